"""The text that a paper is searched by as a whole: its title, authors, venue, abstract and headings. Pure."""

from __future__ import annotations

from folio.paper_metadata import AND_OTHERS, Metadata
from folio.sections import SectionMap
from folio.text import one_line, plain_words

# A heading of these words alone says nothing of what the paper is about.
_GENERIC = frozenset(
    "abstract acknowledgement acknowledgements acknowledgment acknowledgments aims and appendices appendix article"
    " author authors availability background bibliography code competing concluding conclusion conclusions conflict"
    " conflicts content contents contribution contributions contributor contributors data declaration definitions"
    " detail details directions discussion ethics evaluation example examples experiment experimental experiments"
    " figures final findings for funding further future general goals implications implementation in information"
    " interest interests introduction keywords limitations literature main materials method methodology methods"
    " model motivation need notation notes objectives of other our outline overview paper preliminaries problem"
    " procedure references related remarks research result results review section setup statement study summary"
    " supplementary supporting table tables the this to usage use work works".split()
)
# Bounds on what a hostile file can give
_MOST_HEADINGS, _LONGEST_HEADING, _LONGEST = 200, 200, 20_000


def paper_text(metadata: Metadata, sections: SectionMap) -> str:
    """A line each for title, authors' family names, venue, abstract and the headings that name a subject.

    "" if none of them is known. What matters most comes first: a model may not read a long text to its end.
    """
    families = (person.family for person in metadata.authors.value if person != AND_OTHERS)
    lines = [metadata.title.value, metadata.abstract.value, "; ".join(headings(sections))]
    lines += [", ".join(families), metadata.venue.value]
    text = "\n".join(one_line(line) for line in lines if line.strip())[:_LONGEST]
    return text.encode(errors="replace").decode()  # a file may hold half a character, which cannot be hashed


def headings(sections: SectionMap) -> tuple[str, ...]:
    """The headings that name a subject, in order, each once: no "Introduction", no "Materials and methods"."""
    titles = dict.fromkeys(section.title[:_LONGEST_HEADING] for section in sections.headed)
    return tuple(title for title in titles if _names_subject(title))[:_MOST_HEADINGS]


def _names_subject(title: str) -> bool:
    return any(word not in _GENERIC and not word.isdigit() for word in plain_words(title))
