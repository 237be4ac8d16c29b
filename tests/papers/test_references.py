"""The works that a paper cites: lists are split into entries, and entries matched with papers."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from folio.papers.metadata import Field, Metadata, simple_metadata
from folio.papers.model import PageMap, Paper
from folio.papers.references import Entry, Marks, References, citations, entries, split
from folio.papers.sections import PaperSection, SectionMap

BRACKETS = """[1] A. Otter and B. Seal. On kelp rafts. In Proceedings of
Tides, pages 1–12. ACM, 2001.

[2] C. Walrus. Ice floes, revisited. Journal of Ice, 4(2):1–9,

1999. doi:10.1000/ice.42
[3] D. Whale. Songs. PhD thesis, 1987."""
DOTS = """1. A. Otter. “On kelp rafts.” In: Tides 24.4 (2008),
pp. 521–528.
2. C. Walrus. “Ice floes.” In: Journal of Ice
21.2 (2000), pp. 79–85.
3. D. Whale. Songs. Whale Press, 2006."""
APA = """Otter, A., & Seal, B. (2001). On kelp rafts. Tides, 24(4),

521–528. https://doi.org/10.1000/

kelp.1

Walrus, C., Whale, D., Penguin, E., Puffin, F., & Gull,

G. (1999a). Ice floes. Physical Review, 110(4), 965–967.

World Otter Organization. (2022). Otters of the world. https://otters.example/files/

All_Otters.pdf

Zander, Z. (n.d.). Fish. Retrieved from http://fish.example/"""
CAPITALS = """OTTER, A., AND SEAL, B. On kelp rafts. Tides 82, 2 (May 1991).
WALRUS, C., WHALE, D., AND PENGUIN, E.

Ice floes. In Proceedings of the Ice Symposium (2011).
ZANDER, Z. Fish. Tech. Rep. 7, 1988."""
FULL_NAMES = """Ann Otter, Bo Seal, and Cy Walrus. Compact kelp rafts.
In Proc. 21st Tides Symposium, May 1989.

Dee Whale. Songs of the deep sea. In Proc.
30th Symposium on Songs, 1989.

Eve Penguin and Flo Puffin. Ice, 1990. Unpublished manuscript."""


def texts(listed: str) -> list[str]:
    return [" ".join(entry.text.split()) for entry in split(listed, 0, len(listed))]


@pytest.mark.parametrize(
    ("listed", "begins", "years"),
    [
        (BRACKETS, ["A. Otter and", "C. Walrus.", "D. Whale."], [2001, 1999, 1987]),
        (DOTS, ["A. Otter.", "C. Walrus.", "D. Whale."], [2008, 2000, 2006]),
        (APA, ["Otter, A., &", "Walrus, C., Whale", "World Otter", "Zander, Z."], [2001, 1999, 2022, None]),
        (CAPITALS, ["OTTER, A.", "WALRUS, C.", "ZANDER, Z."], [1991, 2011, 1988]),
        (FULL_NAMES, ["Ann Otter,", "Dee Whale.", "Eve Penguin"], [1989, 1989, 1990]),
    ],
    ids=["brackets", "dots", "author-year", "capitals", "full names"],
)
def test_a_list_is_split_into_its_entries(listed: str, begins: list[str], years: list[int | None]) -> None:
    found = split(listed, 0, len(listed))
    assert [entry.text.startswith(start) for entry, start in zip(found, begins, strict=True)] == [True] * len(begins)
    assert [entry.year for entry in found] == years
    assert [listed[entry.start : entry.end] for entry in found] == [entry.text for entry in found]
    whole = "".join("".join(text.split()) for text in texts(listed))
    assert len(whole) >= len("".join(listed.split())) - 3 * len(found)  # all but the numbers


def test_numbers_that_do_not_count_up_begin_no_entry() -> None:
    listed = BRACKETS.replace("1999. doi", "12. 1999. doi").replace("ACM, 2001", "ACM,\n[17] 2001")
    assert len(split(listed, 0, len(listed))) == 3


def test_what_follows_a_list_is_left_out() -> None:
    listed = f"{BRACKETS}\n\n{'Whales sing of other things in the appendix. ' * 40}"
    assert texts(listed)[-1] == "D. Whale. Songs. PhD thesis, 1987."


def test_text_without_entries_has_none() -> None:
    assert split("We thank the otters.\n\nThey sleep in rafts.", 0, 42) == []
    assert split("", 0, 0) == []


def paper_with(text: str, start: int) -> Paper:
    sections = SectionMap((PaperSection(start, len(text), 1, "7", "References", "references"),))
    return Paper("a" * 64, "a.pdf", Metadata(), PageMap((0,), ("",)), len(text), 0, sections=sections)


def test_entries_are_those_of_the_sections_of_references() -> None:
    body = "[1] This is no reference of 1999, but a list.\n[2] Another, 1998.\n[3] And one more, 1997.\n"
    text = f"{body}7. References\n{BRACKETS}"
    found = entries(paper_with(text, len(body)), text)
    assert [entry.text[:8] for entry in found] == ["A. Otter", "C. Walru", "D. Whale"]
    assert text[found[0].start :].startswith("A. Otter and B. Seal.")


# Matching


def cited(metadata: Metadata, *listed: str) -> int | None:
    paper = replace(paper_with("x", 0), id="b" * 64, metadata=metadata)
    return References([Entry(0, len(text), text) for text in listed]).find(Marks(paper))


OTTER = "A. Otter and B. Seal. On sleeping in kelp rafts. In Proceedings of Tides, 2001."


def test_a_paper_is_found_by_title_and_author() -> None:
    about = simple_metadata("On Sleeping in Kelp  Rafts", ["Ann Otter"], 2001)
    assert cited(about, "D. Whale. Songs. 1987.", OTTER) == 1
    assert cited(about, OTTER.replace("kelp rafts", "kelp\nrafts")) == 0
    assert (
        cited(simple_metadata("On Sleeping in Kelp Rafts", ["Zoe Zander"]), OTTER) is None
    )  # another paper of that title
    assert cited(simple_metadata("On Sleeping in Kelp Rafts"), OTTER) is None  # too short to be sure without an author


def test_a_title_within_another_is_not_that_title() -> None:
    about = simple_metadata("On Sleeping in Kelp Rafts", ["Ann Otter"])
    assert cited(about, OTTER.replace("rafts.", "rafts and their otters.")) is None
    assert cited(about, OTTER.replace("On sleeping", "Remarks on sleeping")) is None
    assert cited(about, OTTER.replace("On sleeping", "Remarks on sleeping"), OTTER) == 1


def test_a_paper_is_found_by_its_identifiers() -> None:
    doi = Metadata(doi=Field("10.1000/Kelp.1", "page", True))
    assert cited(doi, "Otter (2001). Rafts. https://doi.org/10.1000/\n\nkelp.1") == 0
    assert cited(doi, "Otter (2001). Rafts. doi:10.1000/kelp.12") is None
    arxiv = Metadata(arxiv=Field("2301.01234v2", "page", True))
    assert cited(arxiv, "A. Otter. Rafts. arXiv:2301.01234, 2023.") == 0
    assert cited(arxiv, "A. Otter. Rafts. arXiv:2301.01235, 2023.") is None


@pytest.mark.parametrize(
    ("listed", "prose", "cites"),
    [
        (BRACKETS, "Rafts [1] and floes [2, 3]; sizes [96, 192]; [1, p. 4]; [1–3].", [1, 2, 3, 1, 1, 3]),
        (DOTS, "As shown [3]. The tide (1) rose 2. Never [4].", [3]),
        (APA, "Otter and Seal (2001) and Walrus et al. (1999a) [2] agree (World Otter Organization, 2022).", [1, 2, 3]),
        (CAPITALS, "See (Otter & Seal, 1991; Walrus et al. 2011), not Otter, 2011, in May 1991.", [1, 2]),
        (FULL_NAMES, "Whale (1989) sang; Seal, 1989 and Otter et al., 1989 drifted. Van Eve, 1990.", [2, 1, 1]),
    ],
)
def test_words_that_cite_an_entry(listed: str, prose: str, cites: list[int]) -> None:
    text = f"{prose}\n\n{listed}"
    found = split(text, len(prose) + 2, len(text))
    cited = citations(text, 0, len(text), found)
    assert [found.index(each.entry) + 1 for each in cited] == cites
    assert all(text[each.start : each.end].strip("[](), ") in prose for each in cited)


@pytest.mark.parametrize("hostile", ["Aa ", "Van ", "Aa, ", "[", "Aa-", "[1,", "Aa, Bb and ", "de de ", "A"])
def test_what_cites_is_found_quickly_on_a_hostile_page(hostile: str) -> None:
    listed = [Entry(10**6, 10**6 + 50, "Aa, B. (2001). Title."), Entry(10**6 + 60, 10**6 + 90, "Otter (2002).", "1")]
    text = hostile * (9000 // len(hostile))
    begun = process_time()
    citations(text, 0, len(text), listed)
    assert process_time() - begun < 1
