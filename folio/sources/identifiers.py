"""What a person types for a work, an identifier or a link, as a typed identifier. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from folio.errors import UsageError
from folio.sources.entries import SICI, find_arxiv

Kind = Literal["arxiv", "doi", "openalex", "semanticscholar"]
LONGEST = 500  # characters of an identifier or a link

_NEW_ARXIV = re.compile(r"\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}(?:v[1-9]\d?)?")
_OLD_ARXIV = re.compile(r"[a-z][a-z-]*(?:\.[a-z]{2})?/\d{2}(?:0[1-9]|1[0-2])\d{3}(?:v[1-9]\d?)?", re.I)
_DOI = re.compile(rf"10\.\d{{4,9}}/(?:[^\s<>\"{{}}|\\^`\x00-\x20\x7f]|{SICI})+")
_OPENALEX = re.compile(r"w[1-9]\d{1,12}", re.I)
_S2 = re.compile(r"[0-9a-f]{40}", re.I)
_PAGES: dict[Kind, str] = {
    "arxiv": "https://arxiv.org/abs/",
    "doi": "https://doi.org/",
    "openalex": "https://openalex.org/",
    "semanticscholar": "https://www.semanticscholar.org/paper/",
}
_CORPUS = re.compile(r"corpusid:\s*(\d{1,12})", re.I)
_PREFIX = re.compile(r"(?:arxiv|doi|openalex|s2)\s*:\s*", re.I)


@dataclass(frozen=True, slots=True)
class Identifier:
    """A work's identifier as its register writes it."""

    kind: Kind
    # "2312.10997v5", "10.1145/3292500.3330701" in lower case, "W4389761608", 40 hex digits or "CorpusId:266191420"
    value: str

    def __str__(self) -> str:
        return f"arXiv:{self.value}" if self.kind == "arxiv" else self.value

    @property
    def page(self) -> str:
        """The address of a page about the work, for people."""
        place = f"CorpusID:{self.value[9:]}" if self.value.startswith("CorpusId:") else self.value
        return _PAGES[self.kind] + quote(place, safe="/:", errors="replace")


def parse_identifier(text: str) -> Identifier:
    """An arXiv id, a DOI, an OpenAlex or Semantic Scholar id, or a link to one. Raises UsageError."""
    found = find_identifier(text)
    if found is None:
        raise UsageError(
            f'"{text[:100]}" is no identifier that Folio knows.',
            "Name an arXiv id (2312.10997), a DOI (10.1145/3292500.3330701), or a link to arXiv, doi.org, OpenAlex or"
            ' Semantic Scholar. To search for words, use --search "words".',
        )
    return found


def find_identifier(text: str) -> Identifier | None:
    """The same; None for anything else, such as words."""
    return _parsed(text.strip()) if len(text) <= LONGEST else None


def _parsed(text: str) -> Identifier | None:
    if re.match(r"https?://", text, re.I):
        return _of_link(text)
    bare = _PREFIX.sub("", text, count=1)
    return _arxiv(bare) or parse_doi(bare) or _openalex(bare) or _semantic_scholar(bare)


def _of_link(text: str) -> Identifier | None:
    try:
        parts = urlsplit(text)
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return None
    path = unquote(parts.path).strip("/")
    last = path.rpartition("/")[2]
    if host == "doi.org" or host == "dx.doi.org":
        return parse_doi(path)
    if host == "arxiv.org" or host.endswith(".arxiv.org"):
        kind, _, rest = path.partition("/")
        return _arxiv(rest.removesuffix(".pdf")) if kind in ("abs", "pdf", "html", "e-print") else None
    if host == "openalex.org" or host == "api.openalex.org":
        return _openalex(last)
    if host == "semanticscholar.org" or host.endswith(".semanticscholar.org"):
        return (
            Identifier("semanticscholar", f"CorpusId:{last[9:]}")
            if _CORPUS.fullmatch(last)
            else _semantic_scholar(last)
        )
    return None


def _arxiv(text: str) -> Identifier | None:
    is_one = _NEW_ARXIV.fullmatch(text) or _OLD_ARXIV.fullmatch(text)
    return Identifier("arxiv", text) if is_one else None


def parse_doi(text: str) -> Identifier | None:
    """A DOI; arXiv's own are arXiv ids. None for anything else."""
    written = text.casefold()
    # What is longer, or has characters that cannot be shown or stored, nobody registered.
    if len(written) > LONGEST or not written.isprintable() or not _DOI.fullmatch(text):
        return None
    arxiv = find_arxiv(written, "")
    return Identifier("arxiv", arxiv) if arxiv else Identifier("doi", written.rstrip(".,;:"))


def _openalex(text: str) -> Identifier | None:
    return Identifier("openalex", text.upper()) if _OPENALEX.fullmatch(text) else None


def _semantic_scholar(text: str) -> Identifier | None:
    if found := _CORPUS.fullmatch(text):
        return Identifier("semanticscholar", f"CorpusId:{found[1]}")
    return Identifier("semanticscholar", text.lower()) if _S2.fullmatch(text) else None
