"""Ask the papers.

python query.py "What is a zero trust architecture?"     one question
python query.py                                          a chat with follow-ups
python query.py --verify "What is zero trust?"           and look the answer up on its pages
python query.py --style report "What is zero trust?"     a summary, an analysis, the papers cited
python query.py --sources "zero trust"                   passages only, no language model
python query.py --batch questions.txt --json             one question a line, one JSON object a line
python query.py --feedback bad                           what the last answer was worth
python query.py --forget                                 nothing of what was asked is kept
python query.py --doctor                                 what is ready, and what mends the rest
"""

from __future__ import annotations

import sys

from folio.commands.ask import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
