"""Prints the profile of a deep answer's evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from folio.answer_types import Answer, Quote
from folio.bibliography.export import stands_in
from folio.cli.show import NAMES, Marks
from folio.deep.types import Age, EvidenceProfile
from folio.shown_text import ABOUT_EVIDENCE, AGE_AND_CONFIDENCE, AGREE, DIFFER, OPEN, counted, name_line, plain_line

if TYPE_CHECKING:
    from rich.console import Console

IsAbove = Callable[[Quote], bool]  # whether the answer above already shows a quote


def show_profile(console: Console, profile: EvidenceProfile, answer: Answer, citation_marks: Marks = NAMES) -> None:
    """Print the evidence profile of a deep answer: sections of a report, or one section after a plain answer.

    Quotes that the answer already shows are cited and not printed again; parts without content are left out.
    """
    texts = [sentence.text for sentence in answer.sentences]
    texts += [quote.quote for sentence in answer.sentences for quote in sentence.against]

    def is_above(quote: Quote) -> bool:
        return stands_in(quote.quote, texts)

    is_report = answer.style == "report"
    if not is_report:
        console.print(f"\n{ABOUT_EVIDENCE}", style="bold")
        console.print(Text("\n".join(_summary(profile))))
    _show_part(console, AGREE, _agreements(profile, is_above, citation_marks), is_report)
    _show_part(console, DIFFER, _differences(profile, is_above, citation_marks), is_report)
    if profile.compared_by and (profile.agreements or profile.differences):
        console.print(Text(f"{name_line(profile.compared_by)} chose which quotes belong together: read them.", "dim"))
    _show_part(console, OPEN, _side(profile.open_questions, is_above, citation_marks, "• ", "• "), is_report)
    if is_report:
        console.print(f"\n{AGE_AND_CONFIDENCE}", style="bold")
        console.print(Text("\n".join(_summary(profile))))


def _show_part(console: Console, heading: str, lines: Iterable[Text], is_report: bool) -> None:
    """Print a heading and the lines below it; nothing if there are no lines."""
    for number, line in enumerate(lines):
        if not number:
            console.print(Text(f"\n{heading}" if is_report else f"{heading}:", "bold" if is_report else ""))
        console.print(line)


def _summary(profile: EvidenceProfile) -> Iterator[str]:
    if confidence := profile.confidence:
        share = f"{confidence.value:.0%}"
        yield f"Confidence: {confidence.level}. In tests {share} of such answers showed what was asked for."
    basis = profile.basis
    left_out = f" {counted(basis.left_out, 'statement')} left out." if basis.left_out else ""
    yield (
        f"{counted(basis.statements, 'statement')} from {counted(basis.papers, 'paper')};"
        f" {basis.relevant} of {counted(basis.scored, 'passage')} relevant.{left_out}"
    )
    yield _age(profile.age)


def _age(age: Age) -> str:
    """The years in which the cited papers were published, on one line."""
    unknown = f"{counted(age.unknown, 'paper')} without a sure year" if age.unknown else ""
    if not age.years:
        return f"Age: {unknown}."
    first, last = age.years[0], age.years[-1]
    span = f"{last}" if first == last else f"{first} to {last}"
    return f"Age: {', '.join(filter(None, [f'papers of {span}', unknown]))}."


def _agreements(profile: EvidenceProfile, is_above: IsAbove, citation_marks: Marks) -> Iterator[Text]:
    for group in profile.agreements:
        yield from _side(group.quotes, is_above, citation_marks, "• ", "  ")


def _differences(profile: EvidenceProfile, is_above: IsAbove, citation_marks: Marks) -> Iterator[Text]:
    for group in profile.differences:
        # The answer may already have both sides: "But [Seal 2019, p. 3] says otherwise".
        if not all(is_above(quote) for quote in (*group.some, *group.others)):
            yield from _side(group.some, is_above, citation_marks, "• ", "  ")
            yield from _side(group.others, is_above, citation_marks, "  but ", "      ")


def _side(quotes: Iterable[Quote], is_above: IsAbove, citation_marks: Marks, first: str, then: str) -> Iterator[Text]:
    """A line for each quote. first, then: what the first line and the others begin with."""
    for index, quote in enumerate(quotes):
        lead = then if index else first
        mark = Text(citation_marks.of(quote), style="cyan")
        if is_above(quote):
            yield Text.assemble(lead, mark, " (quoted above)")
        else:
            yield Text.assemble(lead, (f"“{plain_line(citation_marks.clear(quote.quote))}”", "italic"), " ", mark)
