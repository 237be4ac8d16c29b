"""Evidence for a prompt: in tags, without text that could pass for a tag or an evidence number. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from folio.answer import prompts
from folio.answer.markers import NAMED
from folio.papers.model import Paper
from folio.protocols import Claim
from folio.shown_text import name_line, visible_text
from folio.text import one_line

# A paper's own references, "[12]" or "[3, 4]", which a model would take for evidence numbers; not an index, "x[1]".
_REFERENCES = re.compile(r"(?<![\w\]])(?:\[\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\])+")
# Markers in other forms that models write: [ 2 ], [^2], [Source 2], [2, p. 4], 【2†source】
_MARKERS = re.compile(
    rf"(?<![\w\]])[\[【［〔]\s*\^?{NAMED}(?P<numbers>\d{{1,3}}(?:\s*[,;–-]\s*\d{{1,3}})*)\s*"
    r"(?:(?:,\s*)?(?:pp?\.|pages?)\s?\d+|†[^\[\]【】]{0,40})?\s*[\]】］〕]",
    re.I,
)
# Tokens that begin or end a turn in chat templates, and the prompt's own tags: a paper may contain them.
_LESS = "[<＜﹤]"
_CONTROLS = re.compile(
    rf"{_LESS}(?=[\s/／]*(?:evidence|statement|notes|selection|instruction|s|think(?:ing)?|start_of_turn|end_of_turn|bos|eos|system|user|assistant)\b)"
    rf"|{_LESS}(?=[|｜])|(?<=[|｜])[>＞﹥]|\[(?=/?(?:INST|SYS)\b)|{_LESS}(?={_LESS}/?SYS)",
    re.I,
)
_LINES = re.compile(r"\s*\n\s*")
_NO_MARKUP = str.maketrans('<>"', "‹›'")


def evidence_block(number: int, paper: Paper, pages: str, text: str) -> str:
    """A piece of evidence for a prompt that asks for its number. pages: in words, with its section."""
    name, place = _without_markers(_name(paper)), _without_markers(defused(pages))
    return _block(number, name, place, _without_markers(defused(text)))


def numbered_block(paper: Paper, pages: str, sentences: Iterable[tuple[int, str]]) -> str:
    """A piece of evidence for a prompt that asks for sentence numbers; each sentence is on a line."""
    lines = (f"[{number}] {_without_markers(defused(_LINES.sub(' ', text)))}" for number, text in sentences)
    name = _in_quotes(_without_markers(_name(paper)))
    place = _in_quotes(_without_markers(defused(pages)))
    return prompts.NUMBERED_EVIDENCE.format(paper=name, pages=place, text="\n".join(lines))


def excerpt_block(paper: Paper, pages: str, text: str) -> str:
    """A piece of evidence for a prompt that asks for a quote; it keeps the paper's own references."""
    return fenced(paper.title or paper.file, pages, text)


def fenced(paper: str, pages: str, text: str) -> str:
    """As `excerpt_block`, from the name of the paper."""
    name, place = _in_quotes(defused(paper)), _in_quotes(defused(pages))
    return prompts.EXCERPT.format(paper=name, pages=place, text=defused(text))


def statement_block(number: int, outcome: str, text: str) -> str:
    """A checked statement of an answer, for the model of another program."""
    return prompts.CHECKED.format(number=number, outcome=outcome, text=defused(text))


def harmless(text: str) -> str:
    """Text of a paper for the model of another program, which may not fence it: no control or invisible characters,
    nothing like a tag or a token of a chat template."""
    return defused(visible_text(text))


def harmless_line(text: str) -> str:
    """As `harmless`, for a title, a name or a file."""
    return defused(name_line(text))


def passage_block(number: int, paper: Paper, pages: str, text: str) -> str:
    """A passage for a prompt that asks for quotes; it keeps the paper's own references."""
    return _block(number, _name(paper), pages, defused(text))


def note_line(place: str, note: str) -> str:
    """A note on the evidence, on one line, so that it cannot end the notes or pass for evidence. place: its subject."""
    return f"- on {place}: {_without_markers(defused(_LINES.sub(' ', note)))}"


def selection_block(text: str) -> str:
    """The words that a reader selected, for a prompt."""
    return prompts.SELECTION.format(text=_without_markers(defused(text)))


def instruction_block(text: str) -> str:
    """What a person asks of the wording, for a prompt."""
    return prompts.INSTRUCTION.format(text=_without_markers(defused(text)))


def claim_question(claim: Claim) -> str:
    """The verifier's question about a claim, with the statement on one line."""
    statement = one_line(defused(claim.statement))
    return prompts.VERIFY.format(
        paper=_in_quotes(defused(claim.title)), premise=defused(claim.premise).strip(), statement=statement
    )


def minicheck_question(claim: Claim) -> str:
    """The verifier's question in MiniCheck's form."""
    return prompts.MINICHECK.format(document=one_line(defused(claim.premise)), claim=one_line(defused(claim.statement)))


def _block(number: int, paper: str, pages: str, text: str) -> str:
    return prompts.EVIDENCE.format(number=number, paper=_in_quotes(paper), pages=_in_quotes(pages), text=text)


def _in_quotes(paper: str) -> str:
    return name_line(paper).translate(_NO_MARKUP)


def _name(paper: Paper) -> str:
    return defused(paper.title or paper.file)


def defused(text: str) -> str:
    """The text with harmless characters in place of chat template tokens and tags."""
    visible = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return _CONTROLS.sub(lambda sign: "(" if sign.group() == "[" else "›" if sign.group() in ">＞﹥" else "‹", visible)


def _without_markers(text: str) -> str:
    while (plain := _MARKERS.sub(lambda mark: f"(ref. {mark['numbers']})", _REFERENCES.sub(_in_words, text))) != text:
        text = plain  # after [ 2 ][1], the second marker looks like an index until the first is gone
    return plain


def _in_words(references: re.Match[str]) -> str:
    return references.group().replace("][", ", ").replace("[", "(ref. ").replace("]", ")")
