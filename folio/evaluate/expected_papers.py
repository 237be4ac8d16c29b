"""The format of `eval_set.json`: questions with the papers that should answer them, under any names. Pure.

dataset.py reads the file, and paper_lookup.py looks the papers up in a library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from folio.shown_text import short_line
from folio.text import one_line

# The possible names of each field. If an entry has several of them, the first that is not null counts.
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
# The words in the names of fields with papers, the most specific first, and further words in them: relevant_doc_ids
PAPER_WORDS = ("arxiv", "doi", "paper", "document", "doc", "pdf", "file", "filename", "source", "citation")
FURTHER_WORDS = frozenset(
    "expected relevant gold golden correct ground truth reference target supporting required cited"
    " id name title path url link number num".split()
)
WANTED = frozenset(("expected", "relevant", "gold", "golden"))  # gold_ids, expected_ids
# The fields of an object that contains the questions, also in the other formats of sets
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
    """An entry that is not in this format. The message is a clause that begins with the entry's number."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an answer: a paper under any name, and the position in it as far as it is known."""

    paper: str
    page: int | None = None  # physical, from 1
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Expected:
    """A question and the places of its answer; none if the papers do not answer it."""

    id: str
    question: str
    answer: str
    places: tuple[Place, ...]
    type: str = ""


def wrapped(value: object) -> list[Any] | None:
    """The entries in an object that contains them, {"metadata": {...}, "questions": [...]}; None for an entry itself.

    Questions that name no paper get the object's paper, {"paper": "otters.pdf", "questions": [...]}. Raises EntryError
    if the questions are not a list.
    """
    if not isinstance(value, dict) or not value.keys().isdisjoint((*QUESTION, "gold", TURNS, PARAGRAPHS, TEXT)):
        return None
    lists = [name for name, inside in value.items() if _has_questions(inside)]
    name = next((name for name in (QUESTIONS, DATA, *lists) if name in value), "")
    if not name:  # the first line of a JSON Lines file may describe the set
        return [] if value and value.keys() <= ABOUT_THE_SET else None
    questions = value[name]
    if not isinstance(questions, list):
        raise EntryError(f"{name} is not a list of questions")
    common = {key: inside for key, inside in value.items() if key != name and _rank(key) < PAPER_WORDS.index("source")}
    return [
        {**common, **entry} if isinstance(entry, dict) and not _names_papers(entry) else entry for entry in questions
    ]


def is_expected(fields: Mapping[str, Any], *, among_own: bool) -> bool:
    """Whether an object is an entry of this format, and not of Folio's own format, which has gold entries and an id.

    among_own: whether the file has had entries of Folio's own format; an entry without papers is then one of those.
    """
    if "gold" in fields:
        return False
    is_own = among_own or ("id" in fields and fields.get("answerable") is False)
    return _names_papers(fields) or "query" in fields or not is_own


def parse(fields: Mapping[str, Any], number: int) -> Expected:
    """Parse an entry. number: its position in the file, from 1. Raises EntryError."""
    place = f"question {number}"
    question = _text(fields, QUESTION, place, LONGEST_QUESTION)
    if not question:
        raise EntryError(f"{place} has no text in {_either(QUESTION)}; it has {_listed(fields)}")
    answer = _text(fields, ANSWER, place, LONGEST_ANSWER)
    answerable = _is_answerable(fields, place)
    named = _places(fields, place)
    places = named if answerable else ()  # the papers of an unanswerable question are only its topic
    if answerable and not places:
        raise EntryError(
            f"{place} names no paper: it has {_listed(fields)}, but no name in a field such as papers, arxiv_id, source"
            ' or gold, and no "answerable": false'
        )
    return Expected(_id(fields, number), question, answer, places, _text(fields, TYPE, place, LONGEST_NAME))


def _is_answerable(fields: Mapping[str, Any], place: str) -> bool:
    answerable = True
    for name in (*POSSIBLE, *IMPOSSIBLE):
        value = fields.get(name)
        if value is None:
            continue
        if not isinstance(value, bool):
            raise EntryError(f"{place}: {name} is neither true nor false")
        answerable = answerable and value is (name in POSSIBLE)
    return answerable


def _id(fields: Mapping[str, Any], number: int) -> str:
    name, value = next(((name, fields[name]) for name in ID if fields.get(name) is not None), ("", None))
    if value is None:
        return f"q{number}"
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise EntryError(f"question {number}: {name} is neither text nor a whole number")
    return _clean(str(value), name, f"question {number}", LONGEST_NAME) or f"q{number}"


def _text(fields: Mapping[str, Any], names: tuple[str, ...], place: str, longest: int) -> str:
    """The first of these fields that is not null; "" if there is none. Several answers are joined by "; "."""
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        texts = value if isinstance(value, list) and names is ANSWER else [value]
        return "; ".join(filter(None, (_clean(text, name, place, longest) for text in texts[:MOST_ANSWERS])))
    return ""


def _rank(name: str) -> int:
    """The rank of a field by its name: lower means more likely to have papers; len(PAPER_WORDS) means it has none."""
    words = [word.removesuffix("s") for word in map(str.casefold, _WORD.findall(name))]
    nouns = [PAPER_WORDS.index(word) for word in words if word in PAPER_WORDS]
    if words and all(word in FURTHER_WORDS or word in PAPER_WORDS for word in words):
        if nouns:
            return min(nouns)
        if WANTED & set(words) and words[-1] == "id":
            return 0
    return len(PAPER_WORDS)


def _names_papers(fields: Mapping[str, Any]) -> bool:
    return "gold" in fields or any(_rank(name) < len(PAPER_WORDS) for name in fields)


def _places(fields: Mapping[str, Any], place: str) -> tuple[Place, ...]:
    """The papers in the most likely field. A page and a quote in other fields count only for a single paper."""
    named = sorted((name for name in fields if _rank(name) < len(PAPER_WORDS)), key=_rank)
    name = next((name for name in named if fields[name] is not None), "")
    value = fields.get(name)
    listed = value if isinstance(value, list) else [] if value is None else [value]
    if len(listed) > MOST_PAPERS:
        raise EntryError(f"{place}: {name} has {len(listed):,} papers; at most {MOST_PAPERS:,} are taken")
    places = [each for item in listed for each in _one_paper(item, name, place)]
    if len({each.paper for each in places}) == 1 and all(each == Place(each.paper) for each in places):
        places = _within(fields, places[0].paper, place)
    return tuple(dict.fromkeys(places))


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
    """A paper with each of the pages in these fields; any of them counts as correct."""
    quote = _text(fields, QUOTE, place, LONGEST_ANSWER)
    return [Place(paper, page, quote) for page in _pages(fields, place) or (None,)]


def _pages(fields: Mapping[str, Any], place: str) -> list[int]:
    for name, value in fields.items():
        words = [word.removesuffix("s") for word in map(str.casefold, _WORD.findall(name))]
        if (
            value is None
            or "page" not in words
            or not all(w == "page" or w in FURTHER_WORDS or w == "source" for w in words)
        ):
            continue
        pages: list[int] = []
        for each in value if isinstance(value, list) else [value]:
            match = _PAGES.fullmatch(str(each).strip()) if isinstance(each, str | int) else None
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
            if not 1 <= first <= last < first + MOST_PAGES or len(pages) > MOST_PAGES:
                raise EntryError(f"{place}: {name} is not a page of the file, counted from 1")
            pages += range(first, last + 1)
        return pages
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
        isinstance(entry, dict) and not entry.keys().isdisjoint(QUESTION) for entry in value
    )


def _listed(fields: Mapping[str, Any]) -> str:
    """The names of an object's fields, for an error message."""
    return short_line(", ".join(map(str, fields)), _LONGEST_LIST) if fields else "no fields"


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
