"""The format of `eval_set.json`: questions with the papers that they expect, named in any way. Pure.

dataset.py reads the file, and paper_lookup.py finds the papers in a library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from folio.shown_text import short_line
from folio.text import one_line

# The names of each field; of several in one entry, the first that is not null counts.
QUESTION = ("question", "query", "user_input", "prompt")
ANSWER = (
    "answer", "expected_answer", "ground_truth", "ground_truths", "ground_truth_answer", "gold_answer",
    "reference_answer", "ideal_answer", "reference",
)  # fmt: skip
ID = ("id", "question_id", "query_id", "qid", "_id")
TYPE = ("type", "question_type", "category")
QUOTE = ("quote",)
IMPOSSIBLE = ("unanswerable", "is_unanswerable", "is_impossible", "should_refuse", "should_decline", "out_of_scope")
POSSIBLE = ("answerable", "is_answerable")
# What a field that names papers is called by, the surest first, and the words that may stand beside: relevant_doc_ids
PAPER_WORDS = ("arxiv", "doi", "paper", "document", "doc", "pdf", "file", "filename", "source", "citation")
BESIDE = frozenset(
    "expected relevant gold golden correct ground truth reference target supporting required cited"
    " id name title path url link number num".split()
)
WANTED = frozenset(("expected", "relevant", "gold", "golden"))  # gold_ids, expected_ids
# The fields of an object around the questions, and of a set's other formats, which have them too
QUESTIONS, TURNS, PARAGRAPHS, TEXT, DATA = "questions", "turns", "paragraphs", "text", "data"
ABOUT_THE_SET = frozenset(("metadata", "meta", "_meta", "_metadata", "info"))
LONGEST_QUESTION = 10_000  # characters
LONGEST_ANSWER = 100_000
LONGEST_NAME = 500
MOST_PAPERS = 1_000  # of one question
MOST_PAGES = 100
MOST_ANSWERS = 20
_LONGEST_LIST = 160  # characters of the names of fields
_PAGES = re.compile(r"(\d{1,6})(?:\s?[-–]\s?(\d{1,6}))?")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class EntryError(ValueError):
    """An entry that is not in this format; the text is a clause that begins with its number."""


@dataclass(frozen=True, slots=True)
class Place:
    """A paper in which an answer is, under any name, and where in it as far as that is known."""

    paper: str
    page: int | None = None  # physical, from 1
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Expected:
    """A question and the papers in which its answer is; none if it has no answer there."""

    id: str
    question: str
    answer: str
    places: tuple[Place, ...]
    type: str = ""


def wrapped(value: object) -> list[Any] | None:
    """The entries of an object around them, {"metadata": {...}, "questions": [...]}; None for an entry.

    Questions that name no paper are given that of the object, {"paper": "otters.pdf", "questions": [...]}. Raises
    EntryError where these are no list.
    """
    if not isinstance(value, dict) or not value.keys().isdisjoint((*QUESTION, "gold", TURNS, PARAGRAPHS, TEXT)):
        return None
    lists = [name for name, inside in value.items() if _has_questions(inside)]
    name = next((name for name in (QUESTIONS, DATA, *lists) if name in value), "")
    if not name:  # the first line of a file with a line each may be about the set
        return [] if value and value.keys() <= ABOUT_THE_SET else None
    found = value[name]
    if not isinstance(found, list):
        raise EntryError(f"{name} is not a list of questions")
    common = {key: inside for key, inside in value.items() if key != name and _rank(key) < PAPER_WORDS.index("source")}
    return [{**common, **one} if isinstance(one, dict) and not _names_papers(one) else one for one in found]


def is_expected(fields: Mapping[str, Any], *, among_own: bool) -> bool:
    """Whether an object is an entry of this format, and not of Folio's own, which has gold entries, and an id.

    among_own: whether there were entries of Folio's own format before it; then one that names no paper lacks them.
    """
    if "gold" in fields:
        return False
    is_own = among_own or ("id" in fields and fields.get("answerable") is False)
    return _names_papers(fields) or "query" in fields or not is_own


def parse(fields: Mapping[str, Any], number: int) -> Expected:
    """An entry, the number-th of its file. Raises EntryError."""
    place = f"question {number}"
    question = _text(fields, QUESTION, place, LONGEST_QUESTION)
    if not question:
        raise EntryError(f"{place} has no text in {_either(QUESTION)}; it has {_listed(fields)}")
    answer = _text(fields, ANSWER, place, LONGEST_ANSWER)
    answerable = _is_answerable(fields, place)
    named = _places(fields, place)
    places = named if answerable else ()  # else what it names is what it is about
    if answerable and not places:
        raise EntryError(
            f"{place} names no paper: it has {_listed(fields)}, but no name in a field such as papers, arxiv_id, source"
            ' or gold, and no "answerable": false'
        )
    return Expected(_id(fields, number), question, answer, places, _text(fields, TYPE, place, LONGEST_NAME))


def _is_answerable(fields: Mapping[str, Any], place: str) -> bool:
    found = True
    for name in (*POSSIBLE, *IMPOSSIBLE):
        value = fields.get(name)
        if value is None:
            continue
        if not isinstance(value, bool):
            raise EntryError(f"{place}: {name} is neither true nor false")
        found = found and value is (name in POSSIBLE)
    return found


def _id(fields: Mapping[str, Any], number: int) -> str:
    name, given = next(((name, fields[name]) for name in ID if fields.get(name) is not None), ("", None))
    if given is None:
        return f"q{number}"
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise EntryError(f"question {number}: {name} is neither text nor a whole number")
    return _clean(str(given), name, f"question {number}", LONGEST_NAME) or f"q{number}"


def _text(fields: Mapping[str, Any], names: tuple[str, ...], place: str, longest: int) -> str:
    """The field of these that is there, "" if none is; of several answers one after the other."""
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        texts = value if isinstance(value, list) and names is ANSWER else [value]
        return "; ".join(filter(None, (_clean(text, name, place, longest) for text in texts[:MOST_ANSWERS])))
    return ""


def _rank(name: str) -> int:
    """How surely a field of this name has papers, the lower the surer; len(PAPER_WORDS) if it has none."""
    words = [word.removesuffix("s") for word in map(str.casefold, _WORD.findall(name))]
    nouns = [PAPER_WORDS.index(word) for word in words if word in PAPER_WORDS]
    if words and all(word in BESIDE or word in PAPER_WORDS for word in words):
        if nouns:
            return min(nouns)
        if WANTED & set(words) and words[-1] == "id":
            return 0
    return len(PAPER_WORDS)


def _names_papers(fields: Mapping[str, Any]) -> bool:
    return "gold" in fields or any(_rank(name) < len(PAPER_WORDS) for name in fields)


def _places(fields: Mapping[str, Any], place: str) -> tuple[Place, ...]:
    """What the surest of its fields names; the page and the quote beside it belong to a single paper."""
    named = sorted((name for name in fields if _rank(name) < len(PAPER_WORDS)), key=_rank)
    name = next((name for name in named if fields[name] is not None), "")
    value = fields.get(name)
    listed = value if isinstance(value, list) else [] if value is None else [value]
    if len(listed) > MOST_PAPERS:
        raise EntryError(f"{place}: {name} has {len(listed):,} papers; at most {MOST_PAPERS:,} are taken")
    found = [one for each in listed for one in _one_paper(each, name, place)]
    if len({one.paper for one in found}) == 1 and all(one == Place(one.paper) for one in found):
        found = _within(fields, found[0].paper, place)
    return tuple(dict.fromkeys(found))


def _one_paper(value: object, field: str, place: str) -> list[Place]:
    """A paper by its name, or as an object with a name and perhaps a page: {"file": "otters.pdf", "page": 3}."""
    if not isinstance(value, dict):
        name = _clean(value, field, place, LONGEST_NAME)
        if not name:
            raise EntryError(f"{place}: {field} has an empty name")
        return [Place(name)]
    keys = [*sorted((key for key in value if _rank(key) < len(PAPER_WORDS)), key=_rank), "title", "name", "id"]
    names = (_clean(value[key], f"{field}.{key}", place, LONGEST_NAME) for key in keys if value.get(key) is not None)
    name = next(filter(None, names), "")
    if not name:
        raise EntryError(f"{place}: {field} has a paper without a name; it has {_listed(value)}")
    return _within(value, name, place)


def _within(fields: Mapping[str, Any], paper: str, place: str) -> list[Place]:
    """A paper with each of the pages that these fields have, any of which will do."""
    quote = _text(fields, QUOTE, place, LONGEST_ANSWER)
    return [Place(paper, page, quote) for page in _pages(fields, place) or (None,)]


def _pages(fields: Mapping[str, Any], place: str) -> list[int]:
    for name, value in fields.items():
        words = [word.removesuffix("s") for word in map(str.casefold, _WORD.findall(name))]
        if value is None or "page" not in words or not all(w == "page" or w in BESIDE or w == "source" for w in words):
            continue
        found: list[int] = []
        for each in value if isinstance(value, list) else [value]:
            shown = _PAGES.fullmatch(str(each).strip()) if isinstance(each, str | int) else None
            first, last = (int(shown[1]), int(shown[2] or shown[1])) if shown else (0, 0)
            if not 1 <= first <= last < first + MOST_PAGES or len(found) > MOST_PAGES:
                raise EntryError(f"{place}: {name} is not a page of the file, counted from 1")
            found += range(first, last + 1)
        return found
    return []


def _clean(value: object, name: str, place: str, longest: int) -> str:
    """A text on one line."""
    if isinstance(value, float):
        raise EntryError(f"{place}: {name} has a number, which loses its last zeros; put it in quotes")
    if not isinstance(value, str):
        raise EntryError(f"{place}: {name} is not text")
    if len(value) > longest:
        raise EntryError(f"{place}: {name} has {len(value):,} characters; at most {longest:,} are taken")
    if re.search("[\ud800-\udfff]", value):
        raise EntryError(f"{place}: {name} has half a character")
    return one_line(re.sub(r"[\x00-\x1f\x7f]", " ", value))


def _has_questions(value: object) -> bool:
    return isinstance(value, list) and any(
        isinstance(one, dict) and not one.keys().isdisjoint(QUESTION) for one in value
    )


def _listed(fields: Mapping[str, Any]) -> str:
    """The names of an object's fields, for a person who looks for the one that is missing."""
    return short_line(", ".join(map(str, fields)), _LONGEST_LIST) if fields else "no fields"


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
