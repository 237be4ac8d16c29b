"""Bring papers in from arXiv, OpenAlex, Semantic Scholar and Crossref. Uses the internet.

python fetch.py 2312.10997 10.1145/3292500.3330701               by identifier or link
python fetch.py --search "dense retrieval" --since 2023           by words
python fetch.py --dry-run 2312.10997                              only show what would be downloaded
python fetch.py --metadata                                        titles, authors and years for papers in the index
"""

from __future__ import annotations

import sys

from folio.cli.fetch import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
