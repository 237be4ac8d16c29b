"""A document that is neither Markdown nor Word yet: headings and paragraphs of runs. Written as Markdown here, and for
Word in word.py. Text of papers is only text in both: a link is one only where a run has an address, made by Folio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from folio.bibliography.markdown import escaped, line_escaped
from folio.shown_text import plain_line, visible_text
from folio.text import one_line

RunStyle = Literal["plain", "bold", "italic"]
BlockKind = Literal["heading", "paragraph", "item"]
_MARKS: dict[RunStyle, str] = {"plain": "", "bold": "**", "italic": "*"}


@dataclass(frozen=True, slots=True)
class Run:
    """Words of one style, on one line."""

    text: str
    style: RunStyle = "plain"
    link: str = ""  # an address that Folio made; "" for none
    is_citation: bool = False  # its form may be that of a citation, which other text must not have

    @property
    def shown(self) -> str:
        """The text on one line, without control characters; only a citation looks like one."""
        return visible_text(one_line(self.text)) if self.is_citation else plain_line(self.text)


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, a paragraph or an item of a list. A space stands between two runs."""

    kind: BlockKind
    runs: tuple[Run, ...]
    level: int = 0  # of a heading: 1 is the document's title


def heading(level: int, text: str) -> Block:
    return Block("heading", (Run(text),), level)


def paragraph(*runs: Run) -> Block:
    return Block("paragraph", runs)


def item(*runs: Run) -> Block:
    return Block("item", runs)


def document_markdown(blocks: Sequence[Block]) -> str:
    """The document in CommonMark."""
    lines: list[str] = []
    for place, block in enumerate(blocks):
        joins = place > 0 and block.kind == "item" == blocks[place - 1].kind
        lines.append(("\n" if joins else "\n\n" if place else "") + _block(block))
    return "".join(lines) + "\n"


def _block(block: Block) -> str:
    words = " ".join(_run(run) for run in block.runs)
    if block.kind == "heading":
        return f"{'#' * block.level} {words}"
    return f"- {words}" if block.kind == "item" else words


def _run(run: Run) -> str:
    text = line_escaped(run.shown) if run.is_citation else escaped(run.text)
    mark = _MARKS[run.style] if text else ""
    return f"[{text}]({run.link})" if run.link else f"{mark}{text}{mark}"
