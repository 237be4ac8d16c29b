"""OpenAlex, Crossref, Semantic Scholar, arXiv, Unpaywall: only when a command calls them by name."""
