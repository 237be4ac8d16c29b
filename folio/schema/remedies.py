"""What to do, as the page says it. A terminal is told a command; the page has a button or a place for the same.

An error carries its remedy with the commands in it: each command is the kind of what is to be done, and this is the one
place where the page's words and buttons for it are chosen. Stored texts, such as why a file could not be read, pass
here too. A command that nothing here knows is left out with its sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator

# What a button of the page does
Action = Literal["", "add", "read", "rebuild", "repair", "models", "internet", "zotero"]

_FOLIO = r"(?:folio|python -m folio|python \w+\.py)"


def _command(line: str) -> str:
    """A pattern for a command in backticks. line: a pattern for what follows the name of the program."""
    return rf"`(?:folio |python -m folio |python )(?:{line})`"


_INGEST = r"ingest(?:\.py)?"
_REBUILD, _REPAIR = _command(rf"{_INGEST} --rebuild"), _command(rf"{_INGEST} --repair")
_READ = _command(rf"{_INGEST}(?: [A-Z]+)?")
_GET = r"`(?:make models|hf download [^`]+)`"
_INSTALL = r"`(?:make models|pip install [^`]+)`"
_VERIFY = _command(rf"{_INGEST} --verify")
_ZOTERO = _command(rf"{_INGEST} --zotero")
_DOCTOR = _command(r"(?:doctor|query\.py --doctor)")
_PAPERS = _command(r"papers(?: list --by \w+)?")
_LIST_BY = _command(r"papers list --by \w+")
_LIST = _command(r"papers list [^`]*")
_EDIT = _command("papers edit")
_METADATA = _command(r"fetch(?:\.py)? --metadata")
_EXPAND = _command(r"fetch(?:\.py)? --expand [^`]*")
_SERVE = _command(r"serve(?:\.py)?")
_EDIT_ONE = _command("papers edit [^`]*")
_PULL = r"`ollama pull (?P<model>[^`]+)`"
# A pattern, the words that take its place, and the button that does the same. The first that matches gives the button.
_RULES: tuple[tuple[str, str, Action], ...] = (
    (rf"Put PDFs into (?:papers/|a folder) and run {_READ}(?:, which also says why a file could not be read)?",
     "Add PDFs, or choose a folder in Settings", "add"),
    (rf"run {_PULL} and {_REBUILD}", r"get \g<model> and rebuild the index in Settings", "models"),
    (rf"[Rr]un {_REBUILD}(?: to rebuild it)?", "Rebuild the index in Settings", "rebuild"),
    (rf"{_REBUILD} finds them", "a rebuild of the index in Settings finds them", "rebuild"),
    (rf"[Rr]un {_REPAIR}", "Repair the index in Settings", "repair"),
    (rf"; {_VERIFY} checks the library", "", ""),
    (rf"{_ZOTERO} takes collections from Zotero",
     "Those of Zotero come with it, in Settings", "zotero"),
    (r"Name the data folder, which Zotero shows in its settings under Advanced, Files and Folders: .*",
     "Start Zotero on this computer: its data folder is the one of the profile that was used last.", "zotero"),
    (rf"[Rr]un {_READ}(?: again)? with its path", "read your folders again in Settings", "read"),
    (rf"(?:[Rr]un )?{_READ} completes", "Reading your folders again in Settings completes", "read"),
    (rf"[Rr]un {_READ}(?: again)?", "Read your folders again in Settings", "read"),
    (r"(?:; |, |)or run `ocrmypdf[^`]*`", "", ""),
    (r", for example `ocrmypdf[^`]*`", "", ""),
    (r" \(`apt install tesseract-ocr`, `brew install tesseract`\) or `pip install rapidocr`", " or RapidOCR", "read"),
    (rf"(?:Delete the folder and run|Get them with|Run) {_GET},? or set [^.;,]+",
     "Choose another model in Settings", "models"),
    (rf"Run {_INSTALL},? or set [^.;,]+", "Choose another model in Settings", "models"),
    (rf"[Rr]un {_GET}", "install the cross-encoder", "models"),
    (rf"Run {_INSTALL}", "Ask whoever installed Folio to add them", ""),
    (r"Start it with `ollama serve`, or set LLM=builtin and EMBEDDER=builtin to work without it",
     "Start Ollama, or choose built-in models in Settings", "models"),
    (r"or set LLM=builtin and EMBEDDER=builtin to work without it", "or choose built-in models in Settings", "models"),
    (rf"then get the model again with {_PULL}", r"then get \g<model> again in Settings", "models"),
    (rf"Get it with {_PULL}", r"Get \g<model> in Settings", "models"),
    (rf"[Rr]un {_PULL}", r"get \g<model> in Settings", "models"),
    (r"as `ollama list` shows them, or builtin", "as Settings lists them", "models"),
    (rf"\({_DOCTOR} shows how\)", "(Settings shows how)", "models"),
    (rf": {_PAPERS} lists them", ": the Library lists them", ""),
    (rf"^{_LIST_BY} lists them", "The Library lists them", ""),
    (rf" {_LIST} lists the same papers\.", "", ""),
    (rf"or {_EDIT}", "or Edit in the Library", ""),
    (rf" ?{_METADATA} finds those of arXiv\.?", "", ""),
    (rf"Run {_EXPAND}, which",
     "Look up the citations on the page of that paper, which", ""),
    (rf" such as a viewer or {_SERVE},", " such as a viewer,", ""),
    (rf"(Ask one|Ask first|Ask the question again|Start one): {_FOLIO} .*$", r"\1.", ""),
    (rf": {_EDIT_ONE}", "", ""),
    (r"(?:and |then )?run the same command again", "and try again", ""),
    (r", then the same command again", ", then try again", ""),
    (r"^Run the same command again", "Try again", ""),
    (r"the settings? (?:[A-Z_]+)=auto", "a setting", ""),
)
_COMPILED = tuple((re.compile(pattern), words, action) for pattern, words, action in _RULES)
# A command of a terminal
COMMAND = re.compile(
    rf"`(?:{_FOLIO}|make|pip|hf|ollama|apt|brew|ocrmypdf|python)\b[^`]*`|\b(?:folio|python \w+\.py|python -m folio)"
    r" (?:ask|cite|check|doctor|evaluate|export|fetch|ingest|log|mcp|move|notes|papers|serve|table|--\w+)\b"
)
_SENTENCE = re.compile(r"(?<=[.!?:;]) +(?=[A-Z`“])|\n+")


@dataclass(frozen=True, slots=True)
class PageRemedy:
    """What to do in the page's words, and the button that does it."""

    text: str
    action: Action = ""
    is_whole: bool = True  # whether nothing was left out that no rule knows


def on_page(text: str) -> PageRemedy:
    """A remedy, or another text of a terminal, in the page's words.

    >>> on_page("Run `folio ingest --rebuild` to rebuild it, or restore the previous settings.")
    PageRemedy(text='Rebuild the index in Settings, or restore the previous settings.', action='rebuild', is_whole=True)
    """
    action: Action = ""
    is_sentence = text[:1].isupper()
    for pattern, words, button in _COMPILED:
        changed = pattern.sub(words, text)
        if changed != text:
            action = action or button
            text = changed
    text = _with_capitals(text.strip(), is_sentence=is_sentence)
    if not COMMAND.search(text):
        return PageRemedy(text, action)
    kept = " ".join(part for part in _SENTENCE.split(text) if not COMMAND.search(part))
    return PageRemedy(kept or "Settings may help.", action, is_whole=False)


def _with_capitals(text: str, *, is_sentence: bool) -> str:
    """A verb that has come into the middle of a sentence is small there, and one at its beginning is large."""
    verbs = "Rebuild|Repair|Read|Choose|Get|Add"
    text = re.sub(rf"(?<=[,;a-z)] )({verbs})(?= [\w.:-]+ )", lambda match: match[1].lower(), text)
    return text[:1].upper() + text[1:] if is_sentence else text


def _text_on_page(text: str) -> str:
    return on_page(text).text


# A text of the engine in a reply to the page
OnPage = Annotated[str, AfterValidator(_text_on_page)]
