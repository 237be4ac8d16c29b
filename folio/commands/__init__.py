"""The programs: one command a module; parse, call, print.

In: the words of the command line. Out: text, and an exit code. ingest.py, query.py, serve.py and evaluate.py run these
modules from a checkout.
May import everything: only here do the terminal, the web server and the evaluation meet.
"""
