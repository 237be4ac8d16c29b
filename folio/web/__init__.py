"""The HTTP API and the page in the browser.

In: requests from this computer's browser or programs. Out: JSON, server-sent events, PDFs, pictures of pages.
May import everything below it, but neither the terminal nor the evaluation. static/ holds the page's own files.
"""
