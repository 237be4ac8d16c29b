"""The HTTP API and the page in the browser.

In: requests from this computer's browser or programs. Out: JSON, server-sent events, PDFs, pictures of pages.
May import everything below it, but neither cli nor evaluate. static/ holds the page's files.
"""
