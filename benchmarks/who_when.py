"""How often "who wrote X", "when was X published" and "where did X appear" are answered right.

    python query.py --no-log --json --batch <(python benchmarks/who_when.py --questions) > answers.jsonl
    python benchmarks/who_when.py answers.jsonl [--set look] [--misses]

The index has `papers/` and `mixed/`. who-when.jsonl next to this script has sixty questions, as newcomers type them,
written before the answers were looked at; half of each kind ("kept") was asked only at the end. `answer` has the family
names that must all be shown, or the years or venues of which one must be; `printed` is false where the paper states no
year. *Good*: the first statement cites the paper and has the answer, or, where the paper does not state it, the answer
says that it is not sure. *Partly*: a later statement does. *Wrong*: another year is given as the answer, or a first
statement that is not called the closest passage cites another paper. A remark counts as a first statement.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.answer_types import CLOSEST
from folio.text import fold

QUESTIONS = Path(__file__).with_name("who-when.jsonl")
GRADES = ("good", "partly", "useless", "wrong")


def grade(asked: dict[str, Any], answer: dict[str, Any]) -> str:
    """One of GRADES."""
    sentences = answer["sentences"]
    remark = f"{answer['remark']} {answer['notice']}"
    if asked.get("printed") is False:
        is_said = "ot sure" in remark and (fold(asked["title"]) in fold(remark) or cites(asked, sentences[:1]))
        return "good" if is_said else "useless" if answer["refused"] or not states_year(asked, sentences) else "wrong"
    enough = all if asked["kind"] == "who" else any
    if has_answer(asked, sentences[:1]) or enough(fold(each) in fold(answer["remark"]) for each in asked["answer"]):
        return "good"
    if not sentences or sentences[0]["section"] == CLOSEST.heading:
        return "useless"
    if not cites(asked, sentences[:1]) or states_year(asked, sentences[:1]):
        return "wrong"
    return "partly" if any(has_answer(asked, [sentence]) for sentence in sentences[1:]) else "useless"


def has_answer(asked: dict[str, Any], sentences: list[dict[str, Any]]) -> bool:
    """Whether a sentence cites the paper and has what is wanted: all authors, or one of the years or venues."""
    enough = all if asked["kind"] == "who" else any
    return any(
        cites(asked, [sentence]) and enough(fold(each) in fold(sentence["text"]) for each in asked["answer"])
        for sentence in sentences
    )


def cites(asked: dict[str, Any], sentences: list[dict[str, Any]]) -> bool:
    return any(citation["file"] == asked["file"] for sentence in sentences for citation in sentence["citations"])


def states_year(asked: dict[str, Any], sentences: list[dict[str, Any]]) -> bool:
    """Whether a short answer stands above the sentences: a year that is not right."""
    return any(sentence["short"] for sentence in sentences) and asked["kind"] == "when"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", nargs="?", type=Path)
    parser.add_argument("--questions", action="store_true", help="print the questions, one a line")
    parser.add_argument("--set", default="", choices=("", "look", "kept"))
    parser.add_argument("--misses", action="store_true", help="print what is not good")
    arguments = parser.parse_args()
    asked = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
    asked = [each for each in asked if arguments.set in ("", each["set"])]
    if arguments.questions or arguments.answers is None:
        print("\n".join(each["question"] for each in asked))
        return
    answers = {answer["question"]: answer for answer in map(json.loads, arguments.answers.open(encoding="utf-8"))}
    found = Counter[tuple[str, str]]()
    for each in asked:
        answer = answers[each["question"]]
        graded = grade(each, answer)
        found[each["kind"], graded] += 1
        if arguments.misses and graded != "good":
            print(f"{graded:8}{each['question']}\n        -> {answer['answer'][:200]!r} {answer['notice']}")
    for kind in ("who", "when"):
        print(kind, *(f"{found[kind, graded]} {graded}" for graded in GRADES), sep="  ")


if __name__ == "__main__":
    main()
