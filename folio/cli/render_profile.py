"""Prints what is said of the evidence of a deep answer: sections of a report, or a few lines behind a plain answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from folio.answer.bibliography import stands_in
from folio.answer_types import Answer, Quote
from folio.cli.render import NAMES, Marks
from folio.evidence_profile import Age, Basis, Difference, EvidenceProfile
from folio.outcome_text import ABOUT_EVIDENCE, AGE_AND_CONFIDENCE, AGREE, DIFFER, OPEN
from folio.shown_text import counted, name_line, plain_line

if TYPE_CHECKING:
    from rich.console import Console

IsAbove = Callable[[Quote], bool]  # whether the answer above shows a quote already


def show_profile(console: Console, profile: EvidenceProfile, answer: Answer, citation_marks: Marks = NAMES) -> None:
    """Print it. What the answer shows already is cited and not quoted again; sections without content are left out.

    A report has a section for each part. Behind a plain answer one heading stands above them all.
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
    """A part below its heading; nothing without lines."""
    if shown := list(lines):
        console.print(Text(f"\n{heading}" if is_report else f"{heading}:", "bold" if is_report else ""))
        for line in shown:
            console.print(line)


def _summary(profile: EvidenceProfile) -> Iterator[str]:
    if sure := profile.confidence:
        yield f"Confidence: {sure.level}. In tests {sure.value:.0%} of such answers showed what was asked for."
    yield _basis(profile.basis)
    yield _age(profile.age)


def _basis(basis: Basis) -> str:
    left_out = f" {counted(basis.left_out, 'statement')} left out." if basis.left_out else ""
    return (
        f"{counted(basis.statements, 'statement')} from {counted(basis.papers, 'paper')};"
        f" {basis.relevant} of {counted(basis.scored, 'passage')} relevant.{left_out}"
    )


def _age(age: Age) -> str:
    """When the cited papers came out, on one line."""
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
        if not _stands_above(group, is_above):
            yield from _side(group.some, is_above, citation_marks, "• ", "  ")
            yield from _side(group.others, is_above, citation_marks, "  but ", "      ")


def _stands_above(group: Difference, is_above: IsAbove) -> bool:
    """Whether the answer says both sides already: "But [Seal 2019, p. 3] says otherwise"."""
    return all(is_above(quote) for quote in (*group.some, *group.others))


def _side(quotes: Iterable[Quote], is_above: IsAbove, citation_marks: Marks, first: str, then: str) -> Iterator[Text]:
    """A line for each quote."""
    for place, quote in enumerate(quotes):
        lead = then if place else first
        mark = Text(citation_marks.of(quote), style="cyan")
        if is_above(quote):
            yield Text.assemble(lead, mark, " (quoted above)")
        else:
            yield Text.assemble(lead, (f"“{plain_line(citation_marks.clear(quote.quote))}”", "italic"), " ", mark)
