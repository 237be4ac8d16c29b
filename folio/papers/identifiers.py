"""Identifiers of works: patterns; finding them in typed text, fields and links; comparison. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from folio.errors import UsageError

Kind = Literal["arxiv", "doi", "openalex", "semanticscholar", "pmid", "pmcid"]
LONGEST = 500  # characters of an identifier or a link

DOI_START = r"10\.\d{4,9}(?:\.\d+)*/"
DOI_CHARACTER = r"[^\s\"<>{}|^]"
# The part of older DOIs in angle brackets: "<391::AID-ASI1>", "<0929:TNAOAO>" (ANSI/NISO Z39.56). A DOI cut off before
# it would be the same for all articles of an issue.
_SICI = r"<[\w.]*:[\w:.-]*>"
DOI_ADDRESS = r"(?:https?://)?(?:dx\.)?doi\.org/"
# arXiv ids since April 2007, "2301.01234", and before, "hep-th/9901001"
ARXIV_NEW = r"\d{4}\.\d{4,5}"
ARXIV_OLD = r"[a-z]+(?:-[a-z]+)*(?:\.[A-Z]{2})?/\d{7}"
ARXIV_VERSION = r"v[1-9]\d?"
ARXIV_ID = rf"(?:{ARXIV_NEW}|{ARXIV_OLD})(?:{ARXIV_VERSION})?"
ARXIV_ADDRESS = r"(?:https?://)?(?:www\.|export\.)?arxiv\.org/(?:abs|pdf)/"
ARXIV_DOI = r"10\.48550/(?i:arxiv)\."
OPENALEX_ID = r"W\d{1,12}"
S2_ID = r"[0-9a-f]{40}"
PMID = r"[1-9]\d{0,8}"  # of PubMed
PMCID = r"PMC[1-9]\d{0,8}"  # of PubMed Central

# A typed DOI may have square brackets, as DOIs of old journals do; in a field, brackets do not belong to the DOI.
_TYPED_DOI = re.compile(rf"{DOI_START}(?:(?![\\`]){DOI_CHARACTER}|{_SICI})+")
_DOI_IN_FIELD = re.compile(rf"{DOI_START}(?:(?![\[\]]){DOI_CHARACTER}|{_SICI})+")
_TYPED_ARXIV = re.compile(rf"{ARXIV_NEW}(?:{ARXIV_VERSION})?|(?i:{ARXIV_OLD}(?:{ARXIV_VERSION})?)")
_ARXIV_DOI = re.compile(rf"{ARXIV_DOI}(.+)")
_ARXIV_ALONE = re.compile(rf"(?:(?i:arxiv):)?({ARXIV_ID})(?:\s*\[[\w.-]+\])?")
_ARXIV_IN_TEXT = re.compile(rf"(?i:arxiv\s*:\s*|{ARXIV_ADDRESS}|\bCoRR,?\s+(?:abs/)?)({ARXIV_ID})")
_MONTH = re.compile(r"(?:^|/)\d\d(?:0[1-9]|1[0-2])")
_VERSION = re.compile(r"v\d{1,4}$", re.ASCII)
_OPENALEX = re.compile(r"W[1-9]\d{1,12}", re.I)  # as typed: "W1" may be a word
_S2 = re.compile(S2_ID, re.I)
_PAGES: dict[Kind, str] = {
    "arxiv": "https://arxiv.org/abs/",
    "doi": "https://doi.org/",
    "openalex": "https://openalex.org/",
    "semanticscholar": "https://www.semanticscholar.org/paper/",
    "pmid": "https://europepmc.org/article/MED/",
    "pmcid": "https://europepmc.org/article/PMC/",
}
_SHOWN: dict[Kind, str] = {"arxiv": "arXiv", "pmid": "PMID"}
_CORPUS = re.compile(r"corpusid:\s*(\d{1,12})", re.I)
_PUBMED = re.compile(rf"pmid\s*:?\s*({PMID})|(?:pmcid\s*:?\s*)?({PMCID})", re.I | re.ASCII)
_PREFIX = re.compile(r"(?:arxiv|doi|openalex|s2)\s*:\s*", re.I)


@dataclass(frozen=True, slots=True)
class Identifier:
    """A work's identifier, in its register's form."""

    kind: Kind
    # "2312.10997v5", "10.1145/3292500.3330701" in lower case, "W4389761608", 40 hex digits or "CorpusId:266191420",
    # "34497389", "PMC8425348"
    value: str

    def __str__(self) -> str:
        return f"{_SHOWN[self.kind]}:{self.value}" if self.kind in _SHOWN else self.value

    @property
    def page(self) -> str:
        """The address of a page about the work, for people."""
        place = f"CorpusID:{self.value[9:]}" if self.value.startswith("CorpusId:") else self.value
        return _PAGES[self.kind] + quote(place, safe="/:", errors="replace")


def parse_identifier(text: str) -> Identifier:
    """An arXiv id, a DOI, an id of OpenAlex, Semantic Scholar or PubMed, or a link to one. Raises UsageError."""
    if identifier := find_identifier(text):
        return identifier
    raise UsageError(
        f'"{text[:100]}" is no identifier that Folio knows.',
        "Name an arXiv id (2312.10997), a DOI (10.1145/3292500.3330701), PMID:34497389, or a link to arXiv, doi.org,"
        ' OpenAlex, Semantic Scholar or PubMed. To search for words, use --search "words".',
    )


def find_identifier(text: str) -> Identifier | None:
    """Like parse_identifier; None for anything else, such as words."""
    if len(text) > LONGEST:
        return None
    text = text.strip()
    if re.match(r"https?://", text, re.I):
        return _of_link(text)
    bare = _PREFIX.sub("", text, count=1)
    return _pubmed(text) or _arxiv(bare) or parse_doi(bare) or _openalex(bare) or _semantic_scholar(bare)


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
        return _semantic_scholar(last)
    if host in ("pubmed.ncbi.nlm.nih.gov", "pmc.ncbi.nlm.nih.gov", "ncbi.nlm.nih.gov", "europepmc.org"):
        named = last if last.upper().startswith("PMC") else f"PMID:{last}"
        return _pubmed(named) if re.match(r"\d+\Z|pubmed/|(?:pmc/)?articles?/", path, re.I) else None
    return None


def _pubmed(text: str) -> Identifier | None:
    match = _PUBMED.fullmatch(text)
    if match is None:
        return None
    return Identifier("pmid", match[1]) if match[1] else Identifier("pmcid", match[2].upper())


def _arxiv(text: str) -> Identifier | None:
    return Identifier("arxiv", text) if _TYPED_ARXIV.fullmatch(text) and _MONTH.search(text) else None


def parse_doi(text: str) -> Identifier | None:
    """A DOI; for arXiv's own DOIs, the arXiv id. None for anything else."""
    written = text.casefold()
    # No registered DOI is longer, or has characters that cannot be shown or stored.
    if len(written) > LONGEST or not written.isprintable() or not _TYPED_DOI.fullmatch(text):
        return None
    arxiv = find_arxiv(written, "")
    return Identifier("arxiv", arxiv) if arxiv else Identifier("doi", written.rstrip(".,;:"))


def _openalex(text: str) -> Identifier | None:
    return Identifier("openalex", text.upper()) if _OPENALEX.fullmatch(text) else None


def _semantic_scholar(text: str) -> Identifier | None:
    if found := _CORPUS.fullmatch(text):
        return Identifier("semanticscholar", f"CorpusId:{found[1]}")
    return Identifier("semanticscholar", text.lower()) if _S2.fullmatch(text) else None


def find_doi(text: str) -> str:
    """The DOI in a field, without a resolver's address."""
    match = _DOI_IN_FIELD.search(text)
    return match.group().rstrip(".,;:") if match else ""


def find_arxiv(doi: str, identifier: str, *others: str) -> str:
    """An arXiv id, from a DOI, an arXiv id or other texts that may name one, such as a journal; "" for none."""
    by_doi = _ARXIV_DOI.fullmatch(doi)
    match = _ARXIV_ALONE.fullmatch((by_doi[1] if by_doi else identifier).strip())
    for text in others:
        match = match or _ARXIV_IN_TEXT.search(text)
    return match[1] if match else ""


def without_version(arxiv: str) -> str:
    """An arXiv identifier without its version: "2301.01234"."""
    return _VERSION.sub("", arxiv)


def version_number(arxiv: str) -> int | None:
    """The version in an arXiv identifier; None if it has none."""
    match = _VERSION.search(arxiv)
    return int(match.group()[1:]) if match else None


def bare_arxiv(identifier: str) -> str:
    """An arXiv id for comparison: without version, in lower case."""
    return without_version(identifier).casefold()
