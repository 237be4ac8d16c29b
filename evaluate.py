"""Measure how well questions find their pages, and how good the answers are.

python evaluate.py benchmarks/sample.jsonl                    the set that ships with Folio, on the index
python evaluate.py questions.jsonl --papers ~/papers          on a folder of papers, with its own index
python evaluate.py scifact/                                   plain texts with judgements, as in BEIR
python evaluate.py questions.jsonl --project Consensus        only the papers of a project, and what they can answer
python evaluate.py questions.jsonl --no-answers --limit 20    rankings only, for 20 questions
python evaluate.py questions.jsonl --require recall@5=0.8     exit with 1 if recall is lower
python evaluate.py questions.jsonl --json now.json --compare before.json
python evaluate.py --compare before.json now.json             compare two saved runs
python evaluate.py --make ~/papers -n 50 -o mine.jsonl        a set for these papers, written by the local model
python evaluate.py --from-log -o asked.jsonl                  a set from the answers in the log that were rated good
python evaluate.py --judge                                    let the model grade rated answers, to see if it agrees
"""

from __future__ import annotations

import sys

from folio.cli.evaluate import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
