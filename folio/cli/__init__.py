"""The terminal faces of the scripts: one command, a chat, the doctor, progress bars, a PDF viewer.

In: an app and what was typed. Out: text on standard output and an exit code.
May import everything below it, but neither the web server nor the evaluation.
"""
