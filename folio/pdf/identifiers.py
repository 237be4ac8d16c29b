"""The DOI and the arXiv identifier of a paper, never those of a paper that it cites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from folio.papers.identifiers import (
    ARXIV_ADDRESS,
    ARXIV_DOI,
    ARXIV_NEW,
    ARXIV_OLD,
    ARXIV_VERSION,
    DOI_ADDRESS,
    DOI_CHARACTER,
    DOI_START,
    without_version,
)
from folio.papers.metadata import Field
from folio.pdf import limits
from folio.pdf.dates import MONTH, REFERENCES

_ARCHIVES = frozenset(
    "acc-phys adap-org alg-geom ao-sci astro-ph atom-ph bayes-an chao-dyn chem-ph cmp-lg comp-gas cond-mat cs dg-ga"
    " funct-an gr-qc hep-ex hep-lat hep-ph hep-th math math-ph mtrl-th nlin nucl-ex nucl-th patt-sol physics plasm-ph"
    " q-alg q-bio quant-ph solv-int stat supr-con".split()
)
_PRINTED_VERSION = rf"[ \t]?{ARXIV_VERSION}"
_CATEGORY = r"\s+\[[A-Za-z.-]+\]"
_DAY = rf"\s+\d{{1,2}}\s+(?i:{MONTH})\s+(?:19|20)\d\d\b"
# The stamp in the margin: "arXiv:2301.01234v1 [cs.CL] 3 Jan 2023"; in its early years without the archive.
_STAMP = re.compile(
    rf"arXiv:({ARXIV_NEW}{_PRINTED_VERSION}(?={_CATEGORY})|{ARXIV_OLD}{_PRINTED_VERSION})(?:{_CATEGORY})?{_DAY}"
)
_ADDRESS = re.compile(
    rf"(?:{ARXIV_ADDRESS}|(?:(?:https?://)?doi\.org/)?{ARXIV_DOI})"
    rf"((?:{ARXIV_NEW}|{ARXIV_OLD})(?:{_PRINTED_VERSION})?)(?:\.pdf)?"
)
_FILE_NAME = re.compile(rf"(?:(?i:arxiv)[-_. ]?)?({ARXIV_NEW}(?:{ARXIV_VERSION})?)")

_PREFIX = rf"(?P<prefix>\bdoi\b[\s:.=]{{0,4}}(?:https?://|{DOI_ADDRESS})?\s?|doi\.org/\s?|[⟨〈])?"
# On a page, angle brackets are around a DOI.
_DOI = re.compile(rf"{_PREFIX}(?P<doi>{DOI_START}(?:(?![\[\]⟨⟩〈〉]){DOI_CHARACTER})+)", re.I)
# A DOI that ends in "/" may go on in the next line, so one without more is a match there.
_PRINTED_DOI = re.compile(
    rf"{_PREFIX}(?P<doi>{DOI_START}(?:(?![\[\]⟨⟩〈〉]){DOI_CHARACTER})*)"
    r"(?=(?P<gap>[ \t]*\n(?:[ \t]*\n)?[ \t]*)(?!https?:|doi|10\.\d{4})(?P<rest>[\w.()/;:-]+)(?P<alone>[ \t]*(?:\n|$))?"
    r"|)",
    re.I,
)
_HYPHENS = str.maketrans(dict.fromkeys("\u00ad\u2010\u2011", "-"))
# Words before the DOI of something else: code, data, a cited or an earlier work
_ANOTHER = re.compile(
    r"(?:code|data(?:set)?|software|archive|available|supplement\w*|replicat\w*|original|see|cite[sd]?"
    r"|repository|github\S*)\W[^\n]{0,80}$",
    re.I,
)
# Words of a notice before the DOI of the article that it is about; after a colon, it may stand in the next line.
_ABOUT = re.compile(
    r"\b(?:(?:correct|corrigend|errat|addend|retract|repl[iy]|comment|respon|discussion|expression of concern|refer"
    r"|relate|update)\w*\s+(?:(?:to|of|on|for|in|the|this|original|articles?|papers?|works?)\b\s*)+)"
    r"(?:(?!10\.\d{4})[^\n]){0,80}(?::(?:(?!10\.\d{4})[^\n]){0,80}\n[^\n]{0,20})?$",
    re.I,
)


def arxiv_id(metadata: Mapping[str, str], margin: Iterable[str], file: str) -> Field[str]:
    """The paper's arXiv identifier, with its version if known: "2301.01234v2"; "" if there is none.

    margin: the texts that run up or down the first page. Sources, in this order: the stamp in the margin, metadata (an
    arXiv address as title, subject or keywords), the file name. Identifiers in the text may belong to cited papers.
    """
    values = [metadata.get(key, "").strip() for key in ("title", "subject", "keywords")]
    if identifier := _agreed(*map(_STAMP.fullmatch, margin)):
        return Field(identifier, "page", True)
    if identifier := _agreed(*map(_ADDRESS.fullmatch, values)):
        return Field(identifier, "pdf metadata", True)
    identifier = _agreed(_FILE_NAME.fullmatch(PurePath(file).stem))
    return Field(identifier, "file name", True) if identifier else Field("")


def _agreed(*matches: re.Match[str] | None) -> str:
    """The identifier that all matches agree on, in its longest form; "" if there is none or they disagree."""
    identifiers = ["".join(match[1].split()) for match in matches if match]
    plausible = sorted(filter(_is_plausible, identifiers), key=len)
    return plausible[-1] if len({without_version(identifier) for identifier in plausible}) == 1 else ""


def _is_plausible(identifier: str) -> bool:
    """Whether arXiv can have issued an identifier: year and month, then five digits since 2015, four before."""
    old, _, digits = identifier.rpartition("/")
    month, in_month = int(digits[:4]), without_version(digits[5:])
    if not 1 <= month % 100 <= 12:
        return False
    if old:
        return old.partition(".")[0] in _ARCHIVES and (month <= 703 or month >= 9107)
    return month >= 704 and len(in_month) == (4 if month < 1501 else 5)


def paper_doi(metadata: Mapping[str, str], text: str) -> Field[str]:
    """The paper's DOI: the one printed on its first pages, or else in the PDF's metadata.

    text: the text of the first pages. A printed DOI is certain if it is labelled as a DOI and is the only one.
    """
    references = REFERENCES.search(text)
    text = text[: references.start() if references else limits.FRONT_CHARACTERS].translate(_HYPHENS)
    stated = {key: _trimmed(match["doi"]) for key, value in metadata.items() if (match := _DOI.search(value))}
    from_metadata = stated.get("doi") or next(iter(stated.values()), "")
    printed: dict[str, bool] = {}  # DOI -> whether it is labelled as one and whole
    for match in _PRINTED_DOI.finditer(text):
        before = text[max(0, match.start() - 160) : match.start()]
        if _ANOTHER.search(before[-100:]) or _ABOUT.search(before):
            continue
        doi, is_whole = _continued(match)
        if not is_whole and from_metadata.lower().startswith(doi.lower() or "-"):
            doi, is_whole = from_metadata, True
        if doi:
            printed[doi] = printed.get(doi, False) or (bool(match["prefix"]) and is_whole)
    distinct = {doi.lower() for doi in printed}
    if from_metadata and (not printed or from_metadata.lower() in distinct):
        return Field(from_metadata, "page" if printed else "pdf metadata", bool(printed) or "doi" in stated)
    candidates = [doi for doi, is_labelled in printed.items() if is_labelled] or list(printed)
    return Field(candidates[0], "page", len(distinct) == 1 and printed[candidates[0]]) if candidates else Field("")


def _continued(match: re.Match[str]) -> tuple[str, bool]:
    """The DOI of a match of _PRINTED_DOI, with what continues it in the next line, and whether that is certain.

    A sign at the end of a line, or at the beginning of the next one, tells that a DOI goes on. Without one, a number
    that stands alone below it may be its end, a page number or a year. A DOI that lacks its end is "".
    """
    cut, rest = match["doi"], match["rest"] or ""
    suffix = cut.partition("/")[2]
    is_open, is_alone = not suffix or cut[-1] in "-_/(", match["alone"] is not None
    goes_on = any(map(str.isdigit, rest)) or (is_alone and is_open)
    if is_open:
        breaks_a_word = suffix[-2:-1].isalpha() and cut[-1] == "-" and rest[:1].isalpha()
        return (_trimmed(cut + rest), True) if goes_on and not breaks_a_word else ("", False)
    if not rest or match["gap"].count("\n") > 1 or not goes_on or not (is_alone or rest[0] in ".-_/"):
        return _trimmed(cut), any(map(str.isdigit, suffix))
    has_number = any(map(str.isdigit, suffix))
    if rest[0] in "._/-" or not has_number or (cut[-1] == "." and not _is_page_number(rest)):
        return _trimmed(cut + rest), True
    return _trimmed(cut), _is_page_number(rest) and cut[-1] != "."


def _is_page_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 4 and text[0] != "0"


def _trimmed(doi: str) -> str:
    """A DOI without the punctuation of the sentence around it."""
    doi = doi.rstrip(".,;:'’”*†")
    while doi.endswith(")") and doi.count("(") < doi.count(")"):
        doi = doi[:-1].rstrip(".,;:")
    return doi
