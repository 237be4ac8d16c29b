"""Prints answers, sources, evidence and passages in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from folio.answer.bibliography import cited_pages, reference, stands_in
from folio.answer_types import CLOSEST, EXCERPTS, SUMMARY, Answer, Citation, Evidence, Quote, Section, Sentence
from folio.outcome_text import IN_PLACE, LEFT_OUT, MAY_NOT_ANSWER, PROFILE_HEADINGS, REASONS_NOT_KEPT, legend
from folio.shown_text import (
    REWORDED_SIGN,
    marked_parts,
    name_line,
    number_mark,
    plain,
    plain_line,
    sentence_line,
    short_line,
    statement_lines,
    without_numbers,
)
from folio.types import Hit, Paper

if TYPE_CHECKING:
    from rich.console import Console

    from folio.schema import StatsJson

# Headings that Folio prints itself, in lower case
_OUR_HEADINGS = frozenset(
    {
        *("summary", "analysis", *map(str.lower, EXCERPTS), "sources", "key references", "evidence", "pages"),
        *(LEFT_OUT.lower(), *map(str.lower, PROFILE_HEADINGS)),
    }
)
_LONGEST_QUOTE = 240  # characters of the quote beneath a reworded statement; the sources have it whole


class Marks:
    """How citations are displayed, and text around them: by the paper's name, or by number."""

    def __init__(self, *, numbered: bool = False) -> None:
        self.numbered = numbered
        self._numbers: dict[tuple[str, int], int] = {}  # paper and page, of what is no citation of a sentence

    def take(self, sources: Iterable[Quote]) -> None:
        """Number all that an answer cites, or quotes besides, as `show_sources` does."""
        pages = cited_pages(sources)
        self._numbers = {(page.paper, page.page): number for number, page in enumerate(pages, 1)}

    def of(self, quote: Quote) -> str:
        """A citation as displayed."""
        number = quote.number if isinstance(quote, Citation) else self._numbers.get((quote.paper.id, quote.page), 0)
        flag = quote.paper.flag
        return number_mark(number, flag.mark if flag else "") if self.numbered and number else quote.shown

    def clear(self, text: str) -> str:
        """Text of a paper or a model, of the same length, that has no citation in it."""
        return without_numbers(text) if self.numbered else text


NAMES = Marks()


def show_question(console: Console, question: str) -> None:
    """Print a question above its answer, when there are several."""
    console.print(Text(plain_line(question), style="bold"))


def show_warning(console: Console, text: str) -> None:
    """Print a warning about a paper above what cites it."""
    console.print(Text(text, style="bold red"))


def show_sentence(
    console: Console, sentence: Sentence, before: Sentence | None = None, citation_marks: Marks = NAMES
) -> None:
    """Print one sentence with its cited pages, as soon as it is verified.

    before: the previous sentence; a report's heading is printed when the section changes.
    """
    sentence = replace(sentence, text=citation_marks.clear(sentence.text))
    if before is None and sentence.short:
        _show_short(console, sentence, sentence.short, citation_marks)
    _show_headings(console, sentence.section, before.section if before else None)
    if before and before.section == sentence.section and sentence.section.heading in EXCERPTS:
        console.print()
    if sentence.instead_of:
        console.print(Text(IN_PLACE, style="dim"))
    reworded = sentence.outcome == "reworded"
    signs = ("• " if sentence.section == SUMMARY else "") + (f"{REWORDED_SIGN} " if reworded else "")
    lines = statement_lines(sentence.text)
    text = _marked("\n".join(lines), sentence)
    marks = Text(" ").join(Text(mark, style="cyan") for mark in _marks(sentence.citations, citation_marks))
    if len(lines) > 1:
        _hanging(console, signs or "  ", Text("\n").join([text, marks]))
    elif signs:
        _hanging(console, signs, text.append(" ").append_text(marks))
    else:
        console.print(text.append(" ").append_text(marks))
    for quote in dict.fromkeys(citation.quote for citation in sentence.citations) if reworded else ():
        beneath = short_line(citation_marks.clear(quote), _LONGEST_QUOTE)
        _hanging(console, " " * len(signs), Text(f"“{beneath}”", style="italic dim"))
    for other in sentence.against:
        said = plain_line(citation_marks.clear(other.quote))
        console.print(Text(f"But {citation_marks.of(other)} says otherwise: “{said}”", style="yellow"))


def _marked(shown: str, sentence: Sentence) -> Text:
    """What is shown of a sentence, with the words that answer in bold."""
    parts = marked_parts(shown, sentence.text, sentence.marks)
    return Text.assemble(*((part, "bold" if is_marked else "") for part, is_marked in parts))


def _show_short(console: Console, sentence: Sentence, short: tuple[int, int], citation_marks: Marks) -> None:
    """Print a short answer, with the page that it is on."""
    answer = sentence_line(sentence.text[slice(*short)])
    clear = citation_marks.clear
    on_page = (quote for quote in sentence.citations if stands_in(answer, [clear(quote.quote)]))
    source = next(on_page, sentence.citations[0])
    console.print(Text.assemble((answer, "bold"), " ", (citation_marks.of(source), "cyan")))
    console.print()


def _marks(citations: Sequence[Citation], citation_marks: Marks) -> list[str]:
    """The citations as displayed, each page once."""
    return list(dict.fromkeys(map(citation_marks.of, citations)))


def show_legend(console: Console, sentences: Iterable[Sentence]) -> None:
    """Print what the sign before reworded statements means, if there are any."""
    line = legend([sentence.verified_by for sentence in sentences if sentence.outcome == "reworded"])
    if line:
        console.print(Text(line, style="dim"))


def show_left_out(console: Console, answer: Answer, citation_marks: Marks = NAMES) -> None:
    """Print the statements that were left out of an answer, each with the reason."""
    console.print(f"\n{LEFT_OUT}", style="bold")
    for rejected in answer.left_out:
        _hanging(console, "• ", Text("\n").join(map(Text, statement_lines(citation_marks.clear(rejected.text)))))
        _hanging(console, "  ", Text(f"Reason: {plain_line(rejected.reason)}", style="dim"))
    if not answer.left_out:
        console.print(REASONS_NOT_KEPT if answer.dropped else "Nothing was left out.")


def _show_headings(console: Console, section: Section, before: Section | None) -> None:
    if section == before:
        return
    if before is not None:
        console.print()
    if section.heading and (before is None or section.heading != before.heading):
        console.print(Text(section.heading, style="bold"))
        if section.heading == CLOSEST.heading:
            console.print(Text(MAY_NOT_ANSWER, style="dim"))
    if section.subheading:
        console.print(Text(_subheading(section.subheading), style="bold italic"))


def _subheading(text: str) -> str:
    """A model's heading on one line, in quotation marks if it has the words of one of ours."""
    line = sentence_line(name_line(text))
    return f"“{line}”" if line.casefold().strip(" :.") in _OUR_HEADINGS else line


def show_sources(
    console: Console, citations: Iterable[Quote], shown: Iterable[str] = (), citation_marks: Marks = NAMES
) -> None:
    """Print the sources of an answer: paper, page and quotes, numbered for /verify.

    shown: the texts of the answer; what stands there word for word is not quoted again.
    """
    texts = tuple(shown)
    console.print("\nSources", style="bold")
    for number, source in enumerate(cited_pages(citations), 1):
        _item(console, f"{number}.", _heading(source.file, source.where, source.title, "; ".join(source.sections)))
        if source.notice:
            _indented(console, Text(source.notice, style="bold red"))
        if source.published:
            _indented(console, Text(source.published, style="dim"))
        for quote, support in source.quotes:
            if stands_in(quote, texts):
                continue
            line = Text(f"“{plain_line(citation_marks.clear(quote))}”", style="italic")
            if support < 1:
                line.append(f" · support {support:.2f}", style="dim not italic")
            _indented(console, line)


def show_references(console: Console, citations: Iterable[Quote]) -> None:
    """Print the papers that a report cites, one a line, with the cited pages."""
    pages: dict[Paper, set[int]] = {}
    for citation in citations:
        pages.setdefault(citation.paper, set()).add(citation.page)
    console.print("\nKey references", style="bold")
    for paper, cited in pages.items():
        console.print(Text(reference(paper, sorted(cited))))


def show_evidence(console: Console, evidence: Sequence[Evidence], citation_marks: Marks = NAMES) -> None:
    """Print the evidence that the answerer was given, in full and numbered."""
    console.print("\nEvidence", style="bold")
    for given in evidence:
        _show_passage(console, citation_marks.clear(f"[{given.number}]"), given, scores(given.hits[0]))
    if not evidence:
        console.print("None: no passages found.")


def scores(hit: Hit) -> str:
    """The score that ranks a passage, and those that it was made from."""
    parts = [
        f"{name} {score:.2f}" for name, score in (("cosine", hit.dense), ("BM25", hit.lexical)) if score is not None
    ]
    return f"{hit.score:.2f} ({', '.join(parts)})" if parts else f"{hit.score:.2f}"


def show_hits(console: Console, hits: Sequence[Hit]) -> None:
    """Print passages in rank order, in full."""
    for rank, hit in enumerate(hits, 1):
        _show_passage(console, f"{rank}.", hit, f"{hit.score:.2f}")


def _show_passage(console: Console, number: str, passage: Hit | Evidence, score: str) -> None:
    """Print a passage in full under its paper and pages."""
    heading = _heading(passage.paper.file, passage.where, passage.paper.title, passage.section)
    heading.append(f" · {score}", style="dim")
    _item(console, number, heading)
    if passage.paper.flag:
        _indented(console, Text(passage.paper.flag.text, style="bold red"))
    _indented(console, Text(plain(passage.text.strip())))
    console.print()


def show_stats(console: Console, stats: StatsJson) -> None:
    """Print what is in the store and how it was used, as a table."""
    typical = "" if stats.median_ms is None else f", answered in {stats.median_ms / 1000:.1f} s (median)"
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    for name, found in (
        ("papers", f"{stats.papers:,}"),
        ("passages", f"{stats.chunks:,}"),
        ("size on disk", f"{stats.bytes / 1e6:,.1f} MB"),
        ("questions", f"{stats.questions:,}{typical}"),
        ("not found", f"{stats.refused:,}"),
        ("confidence", "" if stats.median_confidence is None else f"{stats.median_confidence:.2f} (median)"),
        ("feedback", f"{stats.good:,} good, {stats.bad:,} bad"),
    ):
        table.add_row(name, found)
    console.print(table)


def _item(console: Console, number: str, heading: Text) -> None:
    """Print a numbered line. In a terminal it wraps beside its number: the rest of a title must not begin a line."""
    if console.is_terminal:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(number, heading)
        console.print(grid)
    else:
        console.print(Text(f"{number} ").append_text(heading))


def _hanging(console: Console, signs: str, text: Text) -> None:
    """Print text after some signs, all of its lines indented by as much: wrapped in a terminal, whole on a pipe."""
    if console.is_terminal:
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(signs, text)
        console.print(grid)
        return
    first, *more = text.plain.split("\n")
    indented = (f"{' ' * len(signs)}{line}".rstrip() for line in more)
    console.print(Text("\n".join([f"{signs}{first}", *indented])))


def _indented(console: Console, text: Text) -> None:
    """Print text indented: wrapped in a terminal, line by line on a pipe."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, 3)))
    else:
        console.print(Text("\n".join(f"   {line}".rstrip() for line in text.plain.splitlines())))


def _heading(file: str, pages: str, title: str, section: str) -> Text:
    heading = Text()
    heading.append(name_line(file), style="bold")
    heading.append(f", {plain_line(pages)}", style="bold cyan")
    if section:
        heading.append(f", {name_line(section)}", style="cyan")
    if title:
        heading.append(f" · {name_line(title)}", style="dim")
    return heading
