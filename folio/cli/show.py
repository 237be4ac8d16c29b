"""Prints answers and what they rest on: sentences, sources, evidence, passages; and statistics of the library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from folio.answer_types import (
    CLOSEST,
    EXCERPTS,
    SUMMARY,
    Answer,
    Citation,
    Evidence,
    Quote,
    Section,
    Sentence,
)
from folio.bibliography.export import cited_pages, reference, stands_in
from folio.papers.model import Hit, Paper
from folio.shown_text import (
    IN_PLACE,
    LEFT_OUT,
    MAY_NOT_ANSWER,
    PROFILE_HEADINGS,
    REASONS_NOT_KEPT,
    REWORDED_SIGN,
    disagrees,
    legend,
    marked_parts,
    name_line,
    number_mark,
    plain,
    plain_line,
    sentence_line,
    statement_lines,
    without_numbers,
)

if TYPE_CHECKING:
    from rich.console import Console

    from folio.schema.answers import StatsJson


# Headings that Folio prints itself, in lower case
_OUR_HEADINGS = frozenset(
    {
        *("summary", "analysis", *map(str.lower, EXCERPTS), "sources", "key references", "evidence", "pages"),
        *(LEFT_OUT.lower(), *map(str.lower, PROFILE_HEADINGS)),
    }
)


class Marks:
    """How citations are displayed: by the paper's name, or by number."""

    def __init__(self, *, numbered: bool = False) -> None:
        self.numbered = numbered
        self._numbers: dict[tuple[str, int], int] = {}  # (paper, page) -> number, for quotes that no sentence cites

    def take(self, sources: Iterable[Quote]) -> None:
        """Number the pages of these quotes as `show_sources` does."""
        pages = cited_pages(sources)
        self._numbers = {(page.paper, page.page): number for number, page in enumerate(pages, 1)}

    def of(self, quote: Quote) -> str:
        """A citation as displayed."""
        number = quote.number if isinstance(quote, Citation) else self._numbers.get((quote.paper.id, quote.page), 0)
        flag = quote.paper.flag
        return number_mark(number, flag.mark if flag else "") if self.numbered and number else quote.shown

    def clear(self, text: str) -> str:
        """Text of a paper or a model without anything that looks like a citation; its length stays the same."""
        return without_numbers(text) if self.numbered else text


NAMES = Marks()
LONGEST_FILE = 60  # characters of a file's name in a list


def show_question(console: Console, question: str) -> None:
    """Print a question above its answer, when there are several."""
    console.print(Text(plain_line(question), style="bold"))


def show_warning(console: Console, text: str) -> None:
    """Print a warning about a paper above the sentence that cites it."""
    console.print(Text(text, style="bold red"))


def show_sentence(
    console: Console, sentence: Sentence, before: Sentence | None = None, citation_marks: Marks = NAMES
) -> None:
    """Print one sentence with its cited pages.

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
    parts = marked_parts("\n".join(lines), sentence.text, sentence.marks)
    text = Text.assemble(*((part, "bold" if is_marked else "") for part, is_marked in parts))
    cited = dict.fromkeys(map(citation_marks.of, sentence.citations))  # each page once
    marks = Text(" ").join(Text(mark, style="cyan") for mark in cited)
    if len(lines) > 1:
        _hanging(console, signs or "  ", Text("\n").join([text, marks]))
    elif signs:
        _hanging(console, signs, text.append(" ").append_text(marks))
    else:
        console.print(text.append(" ").append_text(marks))
    for quote, spans in {each.quote: each.marks for each in sentence.citations}.items() if reworded else ():
        parts = marked_parts(plain_line(citation_marks.clear(quote)), quote, spans)
        words = Text.assemble("“", *((part, "bold" if is_marked else "") for part, is_marked in parts), "”")
        _hanging(console, " " * len(signs), Text.assemble(words, style="italic dim"))
    for other in sentence.against:
        quote = plain_line(citation_marks.clear(other.quote))
        parts = marked_parts(quote, other.quote, other.marks)
        line = Text(f"But {citation_marks.of(other)} {disagrees(other.differs)}: “", style="yellow")
        for part, is_marked in parts:
            line.append(part, "bold" if is_marked else "")
        console.print(line.append("”"))


def _show_short(console: Console, sentence: Sentence, short: tuple[int, int], citation_marks: Marks) -> None:
    """Print a short answer with its page."""
    answer = sentence_line(sentence.text[slice(*short)])
    on_page = (quote for quote in sentence.citations if stands_in(answer, [citation_marks.clear(quote.quote)]))
    source = next(on_page, sentence.citations[0])
    console.print(Text.assemble((answer, "bold"), " ", (citation_marks.of(source), "cyan")))
    console.print()


def show_legend(console: Console, sentences: Iterable[Sentence]) -> None:
    """Print the meaning of the sign before reworded statements, if there are any."""
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
    """A model's heading on one line, in quotation marks if it looks like a heading of Folio."""
    line = sentence_line(name_line(text))
    return f"“{line}”" if line.casefold().strip(" :.") in _OUR_HEADINGS else line


def show_sources(
    console: Console, citations: Iterable[Quote], shown: Iterable[str] = (), citation_marks: Marks = NAMES
) -> None:
    """Print the sources of an answer: paper, page and quotes, numbered for /verify.

    shown: the texts of the answer; a quote that is in one of them word for word is not printed again.
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
    """Print one line for each paper that a report cites, with the cited pages."""
    pages: dict[Paper, set[int]] = {}
    for citation in citations:
        pages.setdefault(citation.paper, set()).add(citation.page)
    console.print("\nKey references", style="bold")
    for paper, cited in pages.items():
        console.print(Text(reference(paper, sorted(cited))))


def show_evidence(console: Console, evidence: Sequence[Evidence], citation_marks: Marks = NAMES) -> None:
    """Print the answerer's evidence, in full and numbered."""
    console.print("\nEvidence", style="bold")
    for passage in evidence:
        _show_passage(console, citation_marks.clear(f"[{passage.number}]"), passage, scores(passage.hits[0]))
    if not evidence:
        console.print("None: no passages found.")


def show_raw(console: Console, reply: str) -> None:
    """Print what the model wrote, as it came; characters that would control the terminal are left out."""
    console.print("\nThe model's reply", style="bold")
    lines = reply.expandtabs().splitlines() or ["No model wrote a reply."]
    console.print(Text("\n".join("".join(filter(str.isprintable, line)) for line in lines)))


def scores(hit: Hit) -> str:
    """The score that ranks a passage, and the scores it is made from."""
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
    """Print statistics of the index and the log as a table."""
    copies = f", copies: {stats.copies:,}" if stats.copies else ""
    fine = f"{stats.fine_chunks:,}, of {stats.mean_fine_chunk:,.0f} characters (mean)"
    typical = "" if stats.median_ms is None else f", answered in {stats.median_ms / 1000:.1f} s (median)"
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    for name, value in (
        ("papers", f"{stats.papers:,}{copies}"),
        ("pages", f"{stats.pages:,}, {stats.mean_pages:,.1f} a paper (mean; {stats.mean_length:,.0f} characters)"),
        ("passages", f"{stats.chunks:,}, of {stats.mean_chunk:,.0f} characters (mean)"),
        ("fine passages", fine if stats.fine_chunks else "none"),
        ("size on disk", f"{stats.bytes / 1e6:,.1f} MB"),
        ("questions", f"{stats.questions:,}{typical}"),
        ("not found", f"{stats.refused:,}"),
        ("confidence", "" if stats.median_confidence is None else f"{stats.median_confidence:.2f} (median)"),
        ("feedback", f"{stats.good:,} good, {stats.bad:,} bad"),
    ):
        table.add_row(name, value)
    console.print(table)


def _item(console: Console, number: str, heading: Text) -> None:
    """Print a numbered line. In a terminal, wrapped lines are indented, so that they do not look like new items."""
    if console.is_terminal:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(number, heading)
        console.print(grid)
    else:
        console.print(Text(f"{number} ").append_text(heading))


def _hanging(console: Console, signs: str, text: Text) -> None:
    """Print text after some signs, with all lines indented alike: wrapped in a terminal, whole on a pipe."""
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
    heading.append(name_line(file, LONGEST_FILE), style="bold")
    heading.append(f", {plain_line(pages)}", style="bold cyan")
    if section:
        heading.append(f", {name_line(section)}", style="cyan")
    if title:
        heading.append(f" · {name_line(title)}", style="dim")
    return heading


