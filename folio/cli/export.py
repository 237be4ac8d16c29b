"""`folio export`: papers, notes and answers as a folder of Markdown, for Obsidian, Logseq and editors."""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from folio.cli.command import Parser, run_command
from folio.console import output, say
from folio.shown_text import name_line, plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.bibliography.folder import Page, Written
    from folio.papers.model import Paper
    from folio.store.conversations import Conversations, Summary
    from folio.store.note_places import PlacedNote

PAPER, ANSWERS, NOTES = "paper", "answers", "notes"  # the first words of the ids of pages
_LONGEST_TITLE = 80  # characters of a conversation's, in the name of its page


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Write papers, notes and answers as a folder of Markdown, with links between them. What you write"
        " below the mark of a page stays when it is written again.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder, new or written before")
    only = "only the papers, notes and conversations of this project; give each a folder of its own"
    parser.add_argument("--project", metavar="NAME", help=only)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio export") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: _run(app, arguments.folder, arguments.project))


def _run(app: App, folder: Path, project: str | None = None) -> int:
    from folio.bibliography.folder import write_folder

    written = write_folder(folder, _pages(app, project), (PAPER, ANSWERS, NOTES))
    _show(written, folder)
    return 1 if written.left else 0


def _show(written: Written, folder: Path) -> None:
    for left in written.left:
        say(f"Not written: {left}.")
    for kept in written.kept:
        say(f"{kept} is about something that is gone, and was kept because you wrote in it.")
    counts = (
        ("new", written.new), ("changed", written.changed), ("renamed", written.renamed), ("removed", written.removed),
    )  # fmt: skip
    changes = ", ".join(f"{count:,} {what}" for what, count in counts if count) or "nothing to change"
    output().print(f"{plain_line(str(folder))}: {changes}.")


@dataclass
class _Links:
    """The names of pages, and which answers cite which papers."""

    papers: dict[str, str] = field(default_factory=dict)  # paper id -> name
    answers: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # paper id -> names


def _pages(app: App, project: str | None) -> list[Page]:
    """Every page, as the library is now; of one project, if it is named. Raises NotKnown."""
    from folio.bibliography.folder import page_name
    from folio.search.filters import Shelf, notes_of
    from folio.store.note_places import NoteFilter, listed
    from folio.store.works import cited_papers

    with closing(app.open_library()) as library, closing(app.conversations()) as conversations:
        keys = library.citation_keys()
        with library.reading():
            shelf = Shelf(library)
            found = shelf.projects([project])[0] if project else None
        among = None if found is None else notes_of(found)
        papers = [
            paper for paper in shelf.papers if not paper.is_copy and (found is None or paper.id in found.papers)
        ]
        notes = listed(library, NoteFilter(among=among))
        links = _Links({paper.id: page_name(paper.title or paper.file, keys[paper.id]) for paper in papers})
        only = None if among is None else among.conversations
        answers = list(_answers(conversations, links, only, numbered=app.numbers_citations))
        cited = {paper.id: cited_papers(library.database, paper.id) or set() for paper in papers}
    of_paper: dict[str, list[PlacedNote]] = defaultdict(list)
    for note in notes:
        of_paper[note.quotes[0].quote.paper if note.quotes else ""].append(note)
    pages = [
        _paper(paper, keys[paper.id], links, cited[paper.id], of_paper.pop(paper.id, []), app.page_url)
        for paper in papers
    ]
    rest = [note for group in of_paper.values() for note in group]
    which = "other papers" if project else "papers that were removed"
    return [*pages, *answers, *([_other_notes(rest, which, app.page_url)] if rest else [])]


def _paper(
    paper: Paper, key: str, links: _Links, cited: set[str], notes: Sequence[PlacedNote], page_url: str
) -> Page:
    from folio.bibliography.export import reference
    from folio.bibliography.folder import Page, link
    from folio.bibliography.markdown import escaped
    from folio.bibliography.notes import markdown_note
    from folio.papers.link import reader_link

    about = paper.metadata
    parts = [f"# {escaped(name_line(paper.title or paper.file))}", escaped(reference(paper, []))]
    parts.append(f"[Open in Folio]({reader_link(page_url, paper.id, 1)})")
    if about.abstract.value.strip():
        parts += ["## Abstract", escaped(about.abstract.value)]
    if notes:
        parts += ["## Notes", "\n\n---\n\n".join("\n\n".join(markdown_note(note, page_url)) for note in notes)]
    for heading, names in (
        ("Cites", sorted(links.papers[id] for id in cited if id in links.papers and id != paper.id)),
        ("Answers that cite it", sorted(set(links.answers.get(paper.id, ())))),
    ):
        if names:
            parts += [f"## {heading}", "\n".join(f"- {link(name)}" for name in names)]
    fields: dict[str, Any] = {
        "title": name_line(paper.title), "authors": list(map(name_line, paper.authors)), "year": paper.year or 0,
        "venue": name_line(about.venue.value), "doi": about.doi.value, "arxiv": paper.arxiv, "citekey": key,
        "file": name_line(paper.file), "tags": _tags(about.tags.value), "collections": list(about.collections.value),
    }  # fmt: skip
    return Page(f"{PAPER} {paper.id}", "papers", links.papers[paper.id], fields, "\n\n".join(parts))


def _tags(tags: Sequence[str]) -> list[str]:
    """Tags as Obsidian reads them: without spaces, and not of digits alone."""
    joined = (re.sub(r"\s+", "-", plain_line(tag).strip().lstrip("#")) for tag in tags)
    return list(dict.fromkeys(tag for tag in joined if tag and not tag.isdecimal()))


def _answers(
    conversations: Conversations, links: _Links, only: frozenset[str] | None, *, numbered: bool
) -> Iterator[Page]:
    """A page for each conversation, the path to its latest turn; and which papers each cites. only: their ids."""
    from folio.bibliography.folder import Page, link, page_name
    from folio.store.conversations import path_through
    from folio.web.export import markdown

    for summary in conversations.summaries():
        if only is not None and summary.id not in only:
            continue
        replies = [_reply(turn.reply, turn.question) for turn in path_through(conversations.turns(summary.id))]
        if not replies:
            continue
        try:
            body = markdown(name_line(summary.title), replies, numbered=numbered)
        except (KeyError, TypeError, AttributeError):  # an answer that a much older Folio stored
            say(f"The conversation “{name_line(summary.title)}” is of an older Folio and cannot be written.")
            continue
        name = page_name(name_line(summary.title)[:_LONGEST_TITLE], summary.id[:6])
        cited = dict.fromkeys(quote["paper"] for reply in replies for quote in reply.get("citations", ()))
        names = [links.papers[id] for id in cited if id in links.papers]
        for id in cited:
            links.answers[id].append(name)
        if names:
            body += "\n## Papers\n\n" + "\n".join(f"- {link(each)}" for each in names)
        yield Page(f"{ANSWERS} {summary.id}", "answers", name, _about(summary), body)


def _about(summary: Summary) -> dict[str, Any]:
    return {"title": name_line(summary.title), "updated": summary.updated[:10]}


def _reply(reply: Mapping[str, Any], question: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A turn as web/export.py writes it: with an answer, or without."""
    return reply if question is None else {"state": "none", "message": str(question.get("message", ""))}


def _other_notes(notes: Sequence[PlacedNote], which: str, page_url: str) -> Page:
    """The notes on papers that have no page. which: these papers, in words."""
    from folio.bibliography.folder import Page
    from folio.bibliography.notes import markdown

    return Page(f"{NOTES} other", "notes", f"Notes on {which}", {}, markdown(notes, page_url))
