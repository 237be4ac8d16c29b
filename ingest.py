"""Put PDFs into the index.

python ingest.py                    read the new files in papers/
python ingest.py ~/thesis a.pdf     read these folders and files too
python ingest.py --prune            also remove papers whose file is missing
python ingest.py --rebuild          read everything again, after a change of settings
python ingest.py --verify           check that the library and the indexes agree
python ingest.py --repair           rebuild the FAISS and BM25 indexes from the library
"""

from __future__ import annotations

import sys

from folio.cli.ingest import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
