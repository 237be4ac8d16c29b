"""Gold entries, hits and citations, judged against the papers' own pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from folio.answer_types import Citation
from folio.evaluate.dataset import Document, EvalSet, Gold, Question
from folio.evaluate.relevance import (
    MIN_QUOTE_LENGTH,
    GoldProblem,
    RelevanceJudge,
    Targets,
    fold_quote,
    holds,
    is_verbatim,
    pages_with,
    stands_on,
    weight,
)
from folio.ingest import chunking
from folio.papers.metadata import simple_metadata
from folio.papers.model import NewPaper, PageMap, SourceFile
from folio.store.library import Library
from folio.system.files import sha256_file
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf

pytestmark = pytest.mark.fast

HAIRS = "The fur of a sea otter has about 155,000 hairs on each square centimetre of skin"
SHELLS = "It opens the shells with a stone that it carries under its arm"
GAUGE = "The gauge stands in the river Massa and was built in 1922"


def put(library: Library, path: Path, pages: Sequence[str], starts: Sequence[int], name: str = "") -> list[int]:
    """Add a paper with one chunk per page and these page starts, right or wrong; returns the chunk ids."""
    text = "\n\n".join(pages)
    ends = np.cumsum([len(page) + 2 for page in pages])
    spans = tuple((int(end) - len(page) - 2, int(end) - 2) for end, page in zip(ends, pages, strict=True))
    id = sha256_file(path) if path.exists() else path.name
    paper = NewPaper(id, simple_metadata(path.stem), text, PageMap(tuple(starts), ("",) * len(starts)), spans)
    ids = [chunking.chunk_id(id, start, end) for start, end in spans]
    library.add(paper, SourceFile(str(path), name or path.name, id), ids, np.eye(len(ids), 4, dtype=np.float32))
    return ids


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path / "library.sqlite", create=True)
    yield library
    library.close()


@pytest.fixture
def otters(library: Library, tmp_path: Path) -> list[int]:
    """Two chunks, from pages 1 and 2; the index wrongly places both on page 1."""
    return put(library, write_pdf(tmp_path / "otters.pdf", OTTERS), OTTERS, (0, len(" ".join(OTTERS))))


@pytest.fixture
def glaciers(library: Library, tmp_path: Path) -> list[int]:
    starts = (0, len(GLACIERS[0]) + 2, len(GLACIERS[0]) + len(GLACIERS[1]) + 4)
    return put(library, write_pdf(tmp_path / "glaciers.pdf", GLACIERS), GLACIERS, starts, "alps/glaciers.pdf")


def papers_set(*questions: Question) -> EvalSet:
    return EvalSet("small", Path("small.jsonl"), questions)


def asks(*gold: Gold, every: bool = False) -> Question:
    return Question("q1", "What?", gold=gold, every=every)


def judged(library: Library, question: Question) -> tuple[RelevanceJudge, Targets, list[GoldProblem]]:
    judge = RelevanceJudge(papers_set(question), library)
    return (judge, *judge.targets(question))


def test_the_gold_page_is_the_one_with_the_quote(library: Library, otters: list[int]) -> None:
    judge, targets, faults = judged(library, asks(Gold("otters.pdf", 2, f"{SHELLS}.")))
    assert faults == []
    assert [sorted(place.pages) for place in targets.groups[0]] == [[2]]
    assert targets.units == ("chunk", "page", "paper")
    assert judge.ranks(targets, otters) == {"chunk": (2,), "page": (2,), "paper": (1,)}


def test_a_page_that_only_the_chunk_claims_does_not_count(library: Library, otters: list[int]) -> None:
    judge, targets, _ = judged(library, asks(Gold("otters.pdf", 1, HAIRS)))
    (second,) = otters[1:]
    claimed = library.papers()[0].pages.pages_of(library.chunks([second])[second].start, len("x"))
    assert claimed[0] == 1
    assert judge.ranks(targets, [second]) == {"chunk": (None,), "page": (None,), "paper": (1,)}


def test_a_hit_without_the_quote_counts_by_page(library: Library, tmp_path: Path) -> None:
    first, second = OTTERS[0].split("centimetre of skin.")
    ids = put(library, write_pdf(tmp_path / "otters.pdf", [OTTERS[0]]), [second.strip(), first.strip()], (0,))
    judge, targets, _ = judged(library, asks(Gold("otters.pdf", 1, HAIRS)))
    # "No other mammal has a denser fur." is there whole, though it is shorter than 60 characters.
    assert judge.ranks(targets, ids) == {"chunk": (2,), "page": (1,), "paper": (1,)}


def test_any_gold_entry_is_enough_unless_every_paper_is_needed(
    library: Library, otters: list[int], glaciers: list[int]
) -> None:
    gold = (Gold("otters.pdf", 1, HAIRS), Gold("otters.pdf", 2, SHELLS), Gold("alps/glaciers.pdf", 3, GAUGE))
    order = [glaciers[0], otters[1], glaciers[2], otters[0]]
    judge, targets, _ = judged(library, asks(*gold))
    assert judge.ranks(targets, order) == {"chunk": (2,), "page": (2,), "paper": (1,)}
    judge, targets, _ = judged(library, asks(*gold, every=True))
    assert judge.ranks(targets, order) == {"chunk": (2, 3), "page": (2, 3), "paper": (2, 1)}
    assert judge.ranks(targets, order[:1]) == {"chunk": (None, None), "page": (None, None), "paper": (None, 1)}


def test_two_parts_of_one_paper_are_two_targets(library: Library, otters: list[int]) -> None:
    parts = (Gold("otters.pdf", 1, HAIRS, part="fur"), Gold("otters.pdf", 2, SHELLS, part="diet"))
    judge, targets, _ = judged(library, asks(*parts, every=True))
    assert judge.ranks(targets, otters) == {"chunk": (1, 2), "page": (1, 2), "paper": (1, 1)}
    assert judge.ranks(targets, otters[:1])["chunk"] == (1, None)
    judge, targets, _ = judged(library, asks(*parts))
    assert judge.ranks(targets, otters[1:])["chunk"] == (1,)


def test_gold_in_another_script_is_found(library: Library, tmp_path: Path) -> None:
    russian = "Длина открытого ключа составляет 256 бит."
    chinese = "公开密钥的长度为二百五十六位。"
    ids = put(library, tmp_path / "keys.pdf", [russian, chinese], (0, len(russian) + 2))
    for page, quote in enumerate((russian, chinese), 1):
        judge, targets, faults = judged(library, asks(Gold("keys.pdf", page, quote)))
        assert faults == []
        assert judge.ranks(targets, ids) == {"chunk": (page,), "page": (page,), "paper": (1,)}


def test_unknown_chunk_ids_keep_their_rank(library: Library, otters: list[int]) -> None:
    judge, targets, _ = judged(library, asks(Gold("otters.pdf", 1, HAIRS)))
    assert judge.ranks(targets, [77, otters[1], otters[0]]) == {"chunk": (3,), "page": (3,), "paper": (1,)}


def test_gold_without_a_quote_has_fewer_units(library: Library, otters: list[int]) -> None:
    judge, targets, _ = judged(library, asks(Gold("otters.pdf", 2)))
    assert judge.ranks(targets, otters) == {"page": (2,), "paper": (1,)}
    judge, targets, _ = judged(library, asks(Gold("otters.pdf")))
    assert judge.ranks(targets, otters) == {"paper": (1,)}


def test_a_paper_in_a_folder_has_its_bare_name(library: Library, glaciers: list[int]) -> None:
    judge, targets, faults = judged(library, asks(Gold("glaciers.pdf", 3, GAUGE)))
    assert faults == []
    assert judge.ranks(targets, glaciers)["chunk"] == (3,)


def test_a_wrong_gold_entry_is_reported_and_not_counted(library: Library, otters: list[int]) -> None:
    for gold, text in (
        (Gold("whales.pdf", 1, HAIRS), "The index has no paper whales.pdf."),
        (Gold("otters.pdf", 1, "hairs"), "The quote has fewer than 20 letters and digits: 'hairs'."),
        (
            Gold("otters.pdf", 1, "Otters are born in the month of May"),
            "The quote is on no page of otters.pdf: 'Otters are born in the month of May'.",
        ),
    ):
        _, targets, faults = judged(library, asks(gold))
        assert targets == Targets()
        assert faults == [GoldProblem("q1", text, counted=False)]


def test_a_question_counts_by_its_correct_entries(library: Library, otters: list[int]) -> None:
    judge, targets, faults = judged(library, asks(Gold("whales.pdf", 1, HAIRS), Gold("otters.pdf", 2, HAIRS)))
    assert judge.ranks(targets, otters)["page"] == (1,)
    assert faults == [
        GoldProblem("q1", "The index has no paper whales.pdf.", counted=True),
        GoldProblem("q1", "The quote is on p. 1 of otters.pdf, not on p. 2.", counted=True),
    ]
    _, targets, _ = judged(library, asks(Gold("whales.pdf", 1, HAIRS), Gold("otters.pdf", 1, HAIRS), every=True))
    assert targets == Targets()


def test_a_question_without_gold_has_no_targets(library: Library, otters: list[int]) -> None:
    question = Question("q1", "What?", answerable=False)
    assert RelevanceJudge(papers_set(question), library).targets(question) == (Targets(), [])


def test_indexed_pages_stand_in_for_a_missing_file(library: Library, tmp_path: Path) -> None:
    ids = put(library, tmp_path / "gone.pdf", OTTERS, (0, len(OTTERS[0]) + 2))
    judge, targets, _ = judged(library, asks(Gold("gone.pdf", 2, SHELLS)))
    assert judge.ranks(targets, ids)["page"] == (2,)
    assert judge.source_pages.missing == ["gone.pdf"]


def test_a_chunk_with_half_of_a_span_contains_it(library: Library, tmp_path: Path) -> None:
    ids = put(library, tmp_path / "doc", ["0123456789", "abcdefghij"], (0,), "doc")
    text = "0123456789\n\nabcdefghij"
    for start, quote, ranks in (
        (4, "456789\n\nab", (1,)),
        (8, "89\n\nabcdef", (2,)),
        (0, "0", (1,)),
        (10, "\n\n", (None,)),
    ):
        question = asks(Gold("doc", None, quote, start))
        judge = RelevanceJudge(EvalSet("texts", Path("t.json"), (question,), (Document("doc", "", text),)), library)
        targets, faults = judge.targets(question)
        assert faults == []
        assert judge.ranks(targets, ids) == {"chunk": ranks, "paper": (1,)}


def citation(library: Library, start: int, quote: str) -> Citation:
    (paper,) = library.papers()
    return Citation(paper, start, start + len(quote), quote, 1, 1.0)


def test_a_citation_is_right_on_a_gold_page(library: Library, tmp_path: Path) -> None:
    changed = (OTTERS[0], OTTERS[1].replace("a stone", "a spoon"))
    put(library, write_pdf(tmp_path / "otters.pdf", OTTERS), changed, (0, len(OTTERS[0]) + 2))
    judge, targets, _ = judged(library, asks(Gold("otters.pdf", 1, HAIRS)))
    hairs = judge.check_citation(citation(library, OTTERS[0].index(HAIRS), HAIRS), targets)
    assert (hairs.right, hairs.faithful) == (True, True)
    diet = "The diet of the sea otter is made of urchins, clams and crabs."
    elsewhere = judge.check_citation(citation(library, len(OTTERS[0]) + 2, diet), targets)
    assert (elsewhere.right, elsewhere.faithful) == (False, True)
    spoon = SHELLS.replace("stone", "spoon")
    invented = judge.check_citation(citation(library, len(OTTERS[0]) + 2 + changed[1].index(spoon), spoon), targets)
    assert (invented.right, invented.faithful) == (False, False)


def test_a_gold_quote_is_shown_if_the_quotes_have_it(library: Library, otters: list[int]) -> None:
    judge, targets, _ = judged(library, asks(Gold("otters.pdf", 1, HAIRS)))
    hairs = citation(library, OTTERS[0].index(HAIRS), HAIRS)
    sleep = citation(library, 0, "Sea otters sleep")
    assert judge.is_shown([sleep, hairs], targets) is True
    assert judge.is_shown([sleep], targets) is False
    assert judge.is_shown([], targets) is False
    judge, targets, _ = judged(library, asks(Gold("otters.pdf", 1)))
    assert judge.is_shown([hairs], targets) is None  # only the page is known


def test_a_citation_of_a_wrongly_indexed_page_is_not_right(library: Library, otters: list[int]) -> None:
    judge, targets, _ = judged(library, asks(Gold("otters.pdf", 1, HAIRS)))
    at = len(OTTERS[0]) + 2 + OTTERS[1].index(SHELLS)
    cited = judge.check_citation(citation(library, at, SHELLS), targets)  # the index says page 1, the file page 2
    assert (cited.right, cited.faithful) == (False, False)


# Quotes in texts, and texts on pages


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Sea Otters, 155,000 hairs!", "seaotters155000hairs"),
        ("a permu-\n  tation", "apermutation"),
        ("well-known", "wellknown"),
        ("ﬁne ﬂow ½", "fineflow12"),  # ligatures and fractions by NFKC
        ("Zürich", "zurich"),
        ("Z¨urich", "zurich"),  # an accent as a sign of its own, as old fonts have it
        ("STRASSE Straße", "strassestrasse"),
        ("ΚΛΕΙΔΊ, κλειδί", "κλειδικλειδι"),
        ("Ключ_2: «открытый»", "ключ2открытыи"),
        ("密钥长度为 256 位。", "密钥长度为256位"),
        ("열쇠의 길이", "열쇠의길이"),
        ("", ""),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold_quote(text) == folded


@pytest.mark.parametrize(
    ("text", "enough"),
    [
        ("a quote of twenty letters", True),
        ("nineteen letters as it", False),
        ("длина ключа двести", False),
        ("длина открытого ключа 256", True),
        ("密钥长度为位", False),
        ("密钥的长度为位", True),  # seven signs that stand for words
        ("鍵の長さは二百", True),
        ("열쇠의 길이는", False),
    ],
)
def test_quote_is_long_enough_by_what_its_letters_tell(text: str, enough: bool) -> None:
    assert (weight(fold_quote(text)) >= MIN_QUOTE_LENGTH) is enough


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("xxabcdefghijxx", True),
        ("xxabcdef", True),  # the first six of ten
        ("efghijxx", True),  # the last six
        ("xxabcdexx", False),
        ("bcdefghi", False),  # eight of ten, neither end
        ("", False),
    ],
)
def test_a_text_has_most_of_a_quote(text: str, held: bool) -> None:
    assert holds(text, "abcdefghij") is held


def test_no_text_holds_an_empty_quote() -> None:
    assert not holds("abc", "")


def test_a_run_of_sixty_characters_is_on_a_page() -> None:
    run = "".join(f"{number:03d}" for number in range(20))
    assert len(run) == 60
    assert stands_on(f"before{run}after", f"other{run}words")
    assert not stands_on(f"before{run[:59]}after", f"other{run[:59]}words")


def test_a_short_text_is_on_a_page_whole() -> None:
    assert stands_on("short", "ashorttext")
    assert not stands_on("shorter", "ashorttext")
    assert not stands_on("", "ashorttext")


def test_pages_with_a_quote() -> None:
    pages = ["abcdef", "ghi", "abcxyz"]
    assert pages_with("abc", pages) == {1, 3}
    assert pages_with("efgh", pages) == {1, 2}  # it crosses
    assert pages_with("fghia", pages) == frozenset()  # over three pages


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("The permutation is public.", True),
        ("the permutation is public.", False),  # another letter
        ("The permutation is public", True),
        ("The permutation was public.", False),
        ("efficient", True),
        ("pulse driven", True),
        ("  ", False),
    ],
)
def test_quote_stands_word_for_word(quote: str, found: bool) -> None:
    assert is_verbatim(quote, "The per-\nmutation is\n   public. It is eﬃcient, pulse\uffffdriven.") is found
