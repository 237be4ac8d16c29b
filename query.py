"""Ask the papers.

python query.py "What is a zero trust architecture?"     one question
python query.py what is zero trust                       the same, typed in a hurry
python query.py                                          a chat with follow-ups
python query.py --verify "What is zero trust?"           also open the cited pages
python query.py --style report "What is zero trust?"     a summary, an analysis, the papers cited
python query.py --deep "Do A and B agree on C?"          a search in rounds, for questions that need several papers
python query.py --resume                                 continue a deep search that was stopped
python query.py --sources "zero trust"                   passages only, no language model
python query.py --batch questions.txt --json             one question per line, one JSON object per line
python query.py --feedback bad                           rate the last answer
python query.py --forget                                 delete all logged questions and conversations
python query.py --doctor                                 what is ready, and how to fix the rest
"""

from __future__ import annotations

import sys

from folio.cli.ask import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
