"""Hits and answers as people read them in a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from folio.cli import plain
from folio.types import Answer, Citation, Hit, Sentence

if TYPE_CHECKING:
    from rich.console import Console


def answer_json(
    answer: Answer, hits: Sequence[Hit], models: Mapping[str, str], timings_ms: Mapping[str, float]
) -> dict[str, Any]:
    """The object that `--json` prints for a question that was answered or refused."""
    return {
        "question": answer.question,
        "standalone_question": answer.standalone_question,
        "answer": answer.text,
        "refused": answer.refused,
        "sentences": [
            {"text": sentence.text, "citations": [_citation_json(citation) for citation in sentence.citations]}
            for sentence in answer.sentences
        ],
        "dropped_sentences": answer.dropped,
        "notice": answer.notice,
        "citations": [_citation_json(citation) for citation in answer.citations],
        "hits": [_hit_json(hit) for hit in hits],
        "models": dict(models),
        "timings_ms": dict(timings_ms),
    }


def hits_json(
    question: str, hits: Sequence[Hit], models: Mapping[str, str], timings_ms: Mapping[str, float]
) -> dict[str, Any]:
    """The object that `--json --sources` prints: passages, no answer."""
    return {
        "question": question,
        "hits": [_hit_json(hit) for hit in hits],
        "models": dict(models),
        "timings_ms": dict(timings_ms),
    }


def _citation_json(citation: Citation) -> dict[str, Any]:
    return {
        "file": citation.file,
        "title": citation.title,
        "page": citation.page,
        "label": citation.label,
        "quote": citation.quote,
        "hit": citation.source,
    }


def _hit_json(hit: Hit) -> dict[str, Any]:
    return {
        "file": hit.paper.file,
        "title": hit.paper.title,
        "pages": list(hit.pages),
        "score": round(hit.score, 6),
        "dense": None if hit.dense is None else round(hit.dense, 6),
        "bm25": None if hit.lexical is None else round(hit.lexical, 6),
        "text": hit.text,
    }


def show_sentence(console: Console, sentence: Sentence) -> None:
    """One sentence with the pages that it stands on, as soon as it has passed."""
    line = Text(plain(sentence.text))
    for citation in sentence.citations:
        line.append(f" [{plain(PurePath(citation.file).stem)} p.{citation.page}]", style="cyan")
    console.print(line)


def show_sources(console: Console, citations: Sequence[Citation]) -> None:
    """What the answer stands on: paper, page and the words on it."""
    console.print("\nSources", style="bold")
    shown = ""
    for citation in sorted(citations, key=lambda citation: citation.source):
        heading = _heading(citation.file, _page(citation), citation.title)
        if heading.plain != shown:
            console.print(heading)
            shown = heading.plain
        _indented(console, Text(f"“{_one_line(citation.quote)}”", style="italic"))


def show_hits(console: Console, hits: Sequence[Hit]) -> None:
    """Passages in rank order, whole."""
    for rank, hit in enumerate(hits, 1):
        heading = Text(f"{rank}. ")
        heading.append_text(_heading(hit.paper.file, hit.where, hit.paper.title))
        heading.append(f" · {hit.score:.2f}", style="dim")
        console.print(heading)
        _indented(console, Text(plain(hit.text.strip())))
        console.print()


def _indented(console: Console, text: Text) -> None:
    """Wrapped under its heading in a terminal; on a pipe every line stays whole."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, 3)))
    else:
        console.print("\n".join(f"   {line}" for line in text.plain.splitlines()))


def _heading(file: str, pages: str, title: str) -> Text:
    heading = Text()
    heading.append(plain(file), style="bold")
    heading.append(f", {pages}", style="bold cyan")
    if title:
        heading.append(f" · {_one_line(title)}", style="dim")
    return heading


def _page(citation: Citation) -> str:
    printed = "" if citation.label == str(citation.page) else f" (printed {plain(citation.label)})"
    return f"p. {citation.page}{printed}"


def _one_line(text: str) -> str:
    return plain(" ".join(text.split()))
