"""The year of a paper: printed on its first pages, or else from its identifier, its file and what it cites."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from folio.paper_metadata import Field
from folio.pdf import limits

MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR = r"((?:18|19|20)\d\d)\b(?!\s*[-–]\s*\d{4})"
_SHORT = r"[’'‘`]\s?(\d\d)\b"
_DAYS = r"(?:\d{1,2}(?:st|nd|rd|th)?(?:\s*[-–—]\s*(?:\d{1,2}|[a-z]+ \d{1,2}))?,?\s+)?"
_MEETING = (
    r"(?:proceedings|proc\.|conference|conf\.|symposium|symp\.|workshop|congress|international|annual|meeting"
    r"|transactions|journal|letters|magazine|communications|bulletin|review|appears? in|published)"
)
# From the clearest statement of the date of publication to mere hints, each with whether it makes a year sure.
_DATES = tuple(
    (re.compile(pattern, re.I | re.M), sure)
    for pattern, sure in (
        (rf"\bpublished(?:\s+online)?\W{{0,4}}(?:(?:on|in)\s+)?{_DAYS}(?:{MONTH}\s*)?{_DAYS}{_YEAR}", True),
        (rf"\barXiv:\S+\s+(?:\[[\w.-]+\]\s+)?\d{{1,2}}\s+{MONTH}\s+{_YEAR}", True),
        (rf"\bpublished in (?:the )?(?-i:[A-Z])[^\n]{{3,100}}?\b{_YEAR}", True),
        # "0 1985 ACM" and "CQ 1990 IEEE" are how OCR reads the sign in front of them.
        (
            rf"(?:©|\u20dd|\(c\)|\bcopyright)[^\n]{{0,40}}?\b{_YEAR}|\b(?:0|O|@|CQ|Q|C"
            rf"|c)\s+{_YEAR},?\s+(?:by\s+)?(?:the\s+)?(?:ACM|IEEE|SIAM|Elsevier|Springer|USENIX|Association)\b",
            True,
        ),
        (rf"\b[A-Z]{{3,}}[\w&/ -]{{0,12}}\s?{_SHORT}[,.:;]?\s+[^\n]{{0,60}}?\b{_YEAR}", True),
        (rf"\bvol(?:ume|\.)?\s*\d+[^\n]{{0,60}}?\b{_YEAR}", True),
        (rf"^[^\n]{{0,60}}\b{_MEETING}\b[^\n]{{0,100}}?\b{MONTH},?\s+{_DAYS}{_YEAR}", True),
        (
            rf"\b\d{{1,3}}\s?\(\d{{1,3}}(?:[-–]\d{{1,3}})?\)\s?[:,][^\n]{{0,40}}?\b{_YEAR}"
            rf"|\b\d{{1,4}}\s?\({_YEAR}\)\s?\d+\s?[-–]\s?\d+",
            True,
        ),
        (
            rf"^\s*(?:(?:revised|version|draft|dated?"
            rf"|of)\W{{0,3}})*(?:version (?:of )?)?{_DAYS}{MONTH},?\s+{_DAYS}{_YEAR}\W*$",
            True,
        ),
        (rf"^\s*{_YEAR}\s+(?:\w+\s+){{0,6}}{_MEETING}\b|\b{_MEETING}\b[^\n]{{0,40}}\b{_YEAR}\b", True),
        (rf"\baccepted\W{{0,4}}{_DAYS}(?:{MONTH}\s*)?{_DAYS}{_YEAR}", True),
        (rf"\b(?:revised|received|submitted)\W{{0,4}}(?:(?:on|in)\s+)?{_DAYS}(?:{MONTH}\s*)?{_DAYS}{_YEAR}", False),
        (rf"\b[A-Z]{{3,8}}\s?{_SHORT}(?=[\s,.;:)]|$)", False),
        (rf"\b{MONTH},?\s+{_DAYS}{_YEAR}[.\s]*$", False),
        (rf"\bdates? from\s+{_YEAR}", False),
        (r"\bdraft[\s:,]+\d{1,2}/(\d\d)\b", False),
        (rf"^[^\n]{{0,80}}\({_YEAR}\)\.", False),
    )
)
_MAY_DATE = re.compile(r"(?:18|19|20)\d\d|[’'‘`/]\s?\d\d")
_APART = "-" * 9  # between lines that do not follow each other
REFERENCES = re.compile(r"^\W{0,3}(?:\d{1,2}\.?\s+)?(?:references|bibliography|literature cited)\s*$", re.I | re.M)
_LATEST = 2030
_PLAUSIBLE = range(1800, 2100)
_CITED = re.compile(r"(?<![\d.,/:–-])((?:19|20)\d\d)(?![\d/:]|[.,]\d)")


def find_year(text: str, arxiv: str, created: str, cited: str, stated: int | None = None) -> Field[int | None]:
    """The year of the clearest date, and whether it is sure.

    text: of the first pages. arxiv: the paper's identifier or "". created: the PDF's date, "D:20180830...". cited: the
    end of the paper's text, with its references. stated: the year of the journal or the conference that the paper says
    it is in: a later version at arXiv is of that year all the same.
    """
    found = list(_printed(text[: limits.FRONT_CHARACTERS]))
    published = _DATES[0][0].search(text[: limits.FRONT_CHARACTERS])
    if stated and (not published or str(stated) in published.group()):
        return Field(stated, "page", True)
    if found:
        year, sure = found[0]
        # Another year on the same page means a reprint, a revision or a later version: which one is the paper's?
        others = {other for other, is_sure in found if is_sure}
        if _DATES[0][0].search(text):  # the line of copyright may be of the year before or after
            others = {other for other in others if abs(other - year) > 1} | {year}
        if arxiv:
            others.add(_arxiv_year(arxiv))
        return Field(year, "page", sure and others == {year})
    if arxiv:
        return Field(_arxiv_year(arxiv), "identifier", True)
    return _guessed(created, cited)


def _arxiv_year(identifier: str) -> int:
    """When arXiv issued it: the first two digits, "2301.01234" in 2023 and "hep-th/9901001" in 1999."""
    digits = int(identifier.rpartition("/")[2][:2])
    return (1900 if digits > 90 else 2000) + digits


def _printed(text: str) -> list[tuple[int, bool]]:
    """The years that the patterns find, the clearest first."""
    years: list[tuple[int, bool]] = []
    text = _dated_lines(text)
    for pattern, sure in _DATES:
        for match in pattern.finditer(text):
            digits = [group for group in match.groups() if group][-1]
            year = int(digits) if len(digits) == 4 else (1900 if int(digits) > 60 else 2000) + int(digits)
            if year in _PLAUSIBLE:
                years.append((year, sure))
                break
    return years


def _dated_lines(text: str) -> str:
    """The lines with something like a year, each with the line before it."""
    lines = text.split("\n")
    kept: list[str] = []
    for before, line in pairwise(["", *lines]):
        if _MAY_DATE.search(line):
            kept += [_APART, before, line] if not kept or kept[-1] is not before else [line]
    return "\n".join(kept)


def _guessed(created: str, cited: str) -> Field[int | None]:
    """The year of the file, unless what is cited is clearly older: then the file is a scan or a later copy."""
    made = re.match(r"(?:D:)?(?:\D*\d{1,2}\D[\d: ]*)?((?:19|20)\d\d)", created)
    year = int(made[1]) if made else None
    references = list(REFERENCES.finditer(cited))
    listed = cited[references[-1].end() :] if references else cited
    known = Counter(int(found) for found in _CITED.findall(listed))
    latest_first = sorted((one for one in known if one <= (year or _LATEST)), reverse=True)
    # One mention alone may be a page or a size.
    latest = next((one for one in latest_first if known[one] > 1), latest_first[0] if latest_first else None)
    if year is None:
        return Field(latest, "cited works") if latest else Field(None)
    if latest is not None and sum(known.values()) > 3 and year - latest > 2:
        return Field(latest, "cited works")
    return Field(year, "file date")
