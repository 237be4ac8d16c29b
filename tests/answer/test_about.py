"""What a paper is about, in its own sentences: chosen by section, words and meaning; none rather than a bad one."""

from __future__ import annotations

from itertools import accumulate

import pytest

from folio.answer.about import about_quotes
from folio.papers.metadata import simple_metadata
from folio.papers.model import PageMap, Paper
from folio.papers.sections import Kind, PaperSection, SectionMap
from tests.helpers.fakes import HashingEmbedder

TITLE = "Counting sea otters by sound"
CLAIM = "This paper presents a network of buoys for counting sea otters by sound."
RESULT = "Our results show that counting by sound finds 95 percent of the sea otters."


def quotes(*sections: tuple[Kind, str], page: int | None = None) -> dict[str, str]:
    """Kind -> sentence, of a paper with these sections. page: where its second page begins."""
    texts = [text + "\n\n" for _, text in sections]
    ends = list(accumulate(map(len, texts)))
    spans = zip(sections, texts, ends, strict=True)
    listed = [PaperSection(end - len(text), end, 1, "", kind, kind) for (kind, _), text, end in spans]
    starts = (0,) if page is None else (0, page)
    metadata = simple_metadata(TITLE)
    pages = PageMap(starts, ("",) * len(starts))
    paper = Paper("a" * 64, "a.pdf", metadata, pages, ends[-1], 0, sections=SectionMap(tuple(listed)))
    chosen = about_quotes(paper, "".join(texts), HashingEmbedder())
    assert all("".join(texts)[quote.start : quote.end] == quote.quote for _, quote in chosen)
    return {kind: quote.quote for kind, quote in chosen}


def test_each_kind_comes_from_its_sections() -> None:
    method = "We trained a computer for counting the sea otters by sound."
    limits = "Our counting by sound is limited to sea otters that open shells."
    found = quotes(("abstract", CLAIM), ("methods", method), ("results", RESULT), ("limitations", limits))
    assert found == {"claim": CLAIM, "method": method, "result": RESULT, "limits": limits}


@pytest.mark.parametrize(
    "sentence",
    [
        "It presents a network of buoys for counting sea otters by sound.",  # leans on what comes before
        "This paper presents the counting of sea otters by sound in Figure 3 and in Table 2.",
        "This paper presents the counting of sea otters by sound as in Walrus et al before.",
        "We hope that this paper on counting sea otters by sound presents what others need.",
        "This paper presents otters.",  # too short
        "This paper presents the cooking of lentil soup with carrots and onions for many guests.",  # of something else
    ],
)
def test_a_bad_sentence_is_none(sentence: str) -> None:
    assert quotes(("introduction", sentence)) == {}


def test_a_sentence_of_a_section_without_kind_must_be_about_the_paper() -> None:
    assert quotes(("other", "We present the counting of sea otters by sound to the guests.")) == {}
    assert quotes(("other", CLAIM)) == {"claim": CLAIM}


def test_a_sentence_on_two_pages_is_not_quoted() -> None:
    assert quotes(("abstract", CLAIM), page=20) == {}


def test_references_are_never_quoted() -> None:
    assert quotes(("references", CLAIM), ("acknowledgements", RESULT)) == {}


def test_a_sentence_is_quoted_once() -> None:
    both = "We use buoys for counting sea otters by sound, and this paper presents them."
    assert list(quotes(("abstract", both)).values()) == [both]
