"""What a paper as a whole is searched by."""

from __future__ import annotations

from folio.papers.metadata import AND_OTHERS, NO_METADATA, Field, Metadata, PersonName, headings, paper_text
from folio.papers.sections import NO_SECTIONS, PaperSection, SectionMap


def sections(*titles: str, level: int = 1) -> SectionMap:
    return SectionMap(
        tuple(PaperSection(10 * n, 10 * n + 10, level, "", title, "other") for n, title in enumerate(titles))
    )


def test_it_is_made_of_what_names_the_subject() -> None:
    metadata = Metadata(
        title=Field("On  Sea\nOtters", "page", True),
        authors=Field((PersonName("Otter", "Ann"), PersonName("The Kelp Society"), AND_OTHERS), "page", True),
        venue=Field("Journal of Otters", "page"),
        abstract=Field("They float.", "page"),
    )
    found = paper_text(metadata, sections("1 Introduction", "Rafts of kelp", "Materials and Methods", "Rafts of kelp"))
    assert found.splitlines() == [
        "On Sea Otters",
        "They float.",
        "Rafts of kelp",
        "Otter, The Kelp Society",
        "Journal of Otters",
    ]


def test_nothing_known_and_captions_are_no_text() -> None:
    assert paper_text(NO_METADATA, NO_SECTIONS) == ""
    assert paper_text(NO_METADATA, sections("Introduction", "Results and discussion", "References")) == ""
    assert headings(sections("Figure 1: an otter", level=0)) == ()


def test_a_hostile_file_cannot_make_it_long_or_unreadable() -> None:
    many = sections(*(f"{n} {'otter' * 1000}" for n in range(1000)))
    title = Field("\ud800 half a character" + "x" * 10**6, "page")
    found = paper_text(Metadata(title=title), many)
    assert len(found) <= 20_000
    assert found.encode().startswith(b"? half a character")
    assert sum(map(len, headings(many))) <= 40_000
