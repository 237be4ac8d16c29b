"""Algorithms, listings and procedures in a text: each is found whole, and sentences that mention one are not."""

from __future__ import annotations

import time

import pytest

from folio.ingest.algorithms import find_algorithms
from folio.ingest.chunking import parts
from folio.ingest.sections import sections
from folio.papers.model import PageMap
from folio.papers.sections import NO_HEADINGS, HeadingLine, HeadingLines, Style
from folio.store.rows import require_tree

PROSE = (
    "Rafts of otters drift along the shore of the bay when the tide is out and the wind\n"
    "is weak, and the pups sleep on the bellies of their mothers while these are diving\n"
    "for urchins. We counted them from the pier in every month of the two cold winters."
)


def found(*paragraphs: str) -> list[tuple[str, str]]:
    """The algorithms of these paragraphs: names and texts."""
    text = "\n\n".join(paragraphs)
    return [(each.name, text[each.start : each.end]) for each in find_algorithms(text)]


def test_numbered_steps_below_a_description_and_inputs() -> None:
    written = (
        "Algorithm 7 Raft.Count(b)\n\n"
        "Counts the otters of a raft, given a bay and the number of the month.\n\n"
        "Input: bay b ∈ B. ▷ one of the bays\nOutput: number n.\n\n"
        "1: n ← 0\n2: for (i ← 0; i < 8; i++)\n3: n ← n + b[i]\n\n4: end for\n5: return n"
    )
    assert found(PROSE, written, PROSE) == [("Algorithm 7 Raft.Count(b)", written)]


def test_steps_go_on_over_a_page_break_and_end_before_prose_without_a_gap() -> None:
    written = "Algorithm 2: Dive\n1: for all urchins do\n2: dive\n\n3: surface\n4: end for\n5: return l"
    assert found(PROSE, f"{written}\n{PROSE.lower()}") == [("Algorithm 2: Dive", written)]


def test_numbers_without_marks_and_a_label_below() -> None:
    """Listings count on from the one before; long lines are broken, and a number stands alone on its line."""
    first = "1  int raft(int n) {\n\n2  n += 1;\n\n3\nwhile (n < 8) dive(n);\n\n4  return n; }\n\nListing 1. The raft."
    second = "5  void dive(int n) {\n\n6  n--;\n\n7  /* up again */\n\n8  }\n\nListing 2. The dive."
    assert found(PROSE, first, PROSE, second, PROSE) == [
        ("Listing 1. The raft.", first), ("Listing 2. The dive.", second),
    ]  # fmt: skip


def test_an_algorithm_without_numbers_ends_where_prose_begins() -> None:
    steps = "n ← 0 ;\nwhile n < 8 do\nn ← n + 1 ;\nCompute the belly of the mother ;\nend while\nreturn n"
    written = f"Algorithm SLEEP:\n\n{steps}"
    assert found(PROSE, written, PROSE) == [("Algorithm SLEEP:", written)]


def test_a_figure_of_code_with_its_caption() -> None:
    code = "procedure Count(φ);\n\nvar n: integer;\nbegin\nn := 0;\nwhile n < 8 do\nn := n + 1;\nod\nend"
    written = f"{code}\n\nFigure 4. Counting rafts."
    assert found(PROSE, written, PROSE) == [("Figure 4. Counting rafts.", written)]


def test_a_continued_algorithm_is_one() -> None:
    written = "Algorithm 3 Feed\n1: a\n2: b\n3: c\n\nAlgorithm 3 (continued)\n4: d\n5: e"
    assert found(PROSE, written, PROSE) == [("Algorithm 3 Feed", written)]


def test_inputs_with_numbers_are_no_steps() -> None:
    """Steps 1 and 2 may be read before the rest of a line above them."""
    inputs = "Require: F has 256 numbers, and m = 2 if d < 12\nEnsure: B"
    written = f"Algorithm 5 Encode(F)\n\n{inputs}\n\n1:\n2:\na ← F\nreturn a"
    assert found(PROSE, written, PROSE) == [("Algorithm 5 Encode(F)", written)]


def test_the_label_next_to_the_steps_counts_and_not_a_mention_of_it() -> None:
    written = "Algorithm 4 Sign(k)\n\nSigns.\n\n1: r ← 1\n2: return r"
    mention = "Algorithm 4 shows how rafts are signed by the mothers before they drift out of the bay with their pups."
    assert found(mention, written, PROSE) == [("Algorithm 4 Sign(k)", written)]


@pytest.mark.parametrize(
    "paragraph",
    [
        "Algorithm 4 shows the steps, and\nAlgorithm 5, which is slower, is left out.",
        "Algorithm 1 Count() . . . . . . . . . . . 8\nAlgorithm 2 Dive(n) . . . . . . . . . . . 9",
        "Figure 2: Rafts by month.\n\n1 Sender\n2 Receiver\n3 Others",
        "Figure 3. Otters.\n\n1. A. Otter. Rafts of the bay. 1999.\n2. B. Seal. Ice. 2001.\n3. C. Pup. Sleep. 2004.",
        "Algorithm 9 is run by all otters. Its steps are easy.",
        "12  2.6 (2.6)\n13  2.7 (2.9)\n14  2.9 (3.1)\n\nTable 3. Weights of pups.",
    ],
)
def test_a_mention_contents_figures_tables_and_references_are_no_algorithm(paragraph: str) -> None:
    assert found(PROSE, paragraph, PROSE) == []


def test_it_is_a_block_of_the_paper_and_no_heading_cuts_it() -> None:
    algorithm = "Algorithm 1 Count\n\n1: n ← 0\n2: Results\n3: return n"
    text = f"1 Introduction\n{PROSE}\n\n2 Rafts\n{PROSE}\n\n{algorithm}\n\n{PROSE}\n\n3 Conclusion\n{PROSE}"
    style, body = Style(12.0, "Bold", True, False, False), Style(10.0, "Roman", False, False, False)
    lines = [
        HeadingLine(1, line, style, introduces=True)
        for line in ("1 Introduction", "2 Rafts", "2: Results", "3 Conclusion")
    ]
    tree = sections(HeadingLines(tuple(lines), (), body.size, body.font), text, PageMap((0,), ("",)))
    require_tree(tree, len(text), "the sections")
    blocks = [(each.kind, each.title, text[each.start : each.end]) for each in tree if not each.level]
    assert blocks == [("algorithm", "Algorithm 1 Count", algorithm)]
    assert [each.title for each in tree if each.level] == ["Introduction", "Rafts", "Conclusion"]


def test_an_algorithm_is_a_passage_of_its_own() -> None:
    algorithm = "Algorithm 1 Count\n\n" + "\n".join(f"{n}: n ← n + {n}, and the pup is counted" for n in range(1, 9))
    text = f"{PROSE}\n\n{algorithm}\n\n{PROSE}"
    blocks = sections(NO_HEADINGS, text, PageMap((0,), ("",)))
    assert algorithm in [text[start:end].strip() for start, end in parts(text, 1500, blocks)]


def test_hostile_texts_take_no_longer_than_their_length() -> None:
    listing = "Listing 2. a\n\n2 b\n3 c\n\n"
    for repeated in ("Algorithm 1\n", "Algorithm 1: a\n\n1: b\n", "1: a\n", listing, "return x;\n\n"):
        began = time.perf_counter()
        find_algorithms("Algorithm 1 A\n" + repeated * (200_000 // len(repeated)))
        assert time.perf_counter() - began < 10
