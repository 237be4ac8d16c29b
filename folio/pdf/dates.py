"""The year of a paper: printed on its first pages, or else from its identifier, its file and what it cites."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from folio.papers.metadata import Field
from folio.pdf import limits

MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR = r"((?:18|19|20)\d\d)\b(?!\s*[-–]\s*\d{4})"
_SHORT = r"[’'‘`]\s?(\d\d)\b"
_SEASON = rf"(?:{MONTH}|spring|summer|autumn|fall|winter)"
_DAYS = r"(?:\d{1,2}(?:st|nd|rd|th)?(?:\s*[-–—]\s*(?:\d{1,2}|[a-z]+ \d{1,2}))?,?\s+)?"
_MEETING = (
    r"(?:proceedings|proc\.|conference|conf\.|symposium|symp\.|workshop|congress|international|annual|meeting"
    r"|transactions|journal|letters|magazine|communications|bulletin|review|appears? in|published)"
)
# Patterns of dates, the clearest first; each with whether its year is certain.
_DATES = tuple(
    (re.compile(pattern, re.I | re.M), sure)
    for pattern, sure in (
        (rf"\bpublished(?:\s+online)?\W{{0,4}}(?:(?:on|in)\s+)?{_DAYS}(?:{MONTH}\s*)?{_DAYS}{_YEAR}", True),
        (rf"(?:^|\b(?:version|online)\s)\s*posted\W{{0,4}}(?:on\s+)?{_DAYS}{MONTH},?\s+{_DAYS}{_YEAR}", True),
        (rf"\barXiv:\S+\s+(?:\[[\w.-]+\]\s+)?\d{{1,2}}\s+{MONTH}\s+{_YEAR}", True),
        (rf"\bpublished in (?:the )?(?-i:[A-Z])[^\n]{{3,100}}?\b{_YEAR}", True),
        # OCR reads "© 1985 ACM" as "0 1985 ACM" or "CQ 1985 ACM".
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
        # The code of a copyright in journals and proceedings: "0001-0782/78/0700-0558", "0-89791-174-1/85/007/0177"
        (r"(?<=[\dX])/(\d\d)/\d{3,4}[-/–]\d{3,5}\b", True),
        (
            rf"^\s*(?:(?:revised|version|draft|dated?|released?|printed|of|on|v)\b\W{{0,3}}(?:\d[\d.]*\w?\W{{1,3}})?)*"
            rf"(?:version (?:of )?)?{_DAYS}{_SEASON},?\s+{_DAYS}{_YEAR}(?:\W+v(?:ersion)?\W{{0,2}}\d[\d.]*\w?)?\W*$",
            True,
        ),
        # A line with a day, a word and a year is a date in any language; so is 2019-04-15.
        (rf"^\W*(?:[^\W\d_]+,?\s+)?\d{{1,2}}\.?\s+(?:de\s+)?[^\W\d_]{{3,12}}\.?\s+(?:de\s+)?{_YEAR}\W*$", True),
        (rf"^[^\n\d]{{0,20}}\b{_YEAR}(?:-\d\d-\d\d|/\d\d/\d\d)\b[^\n]{{0,20}}$", True),
        (rf"^\s*{_YEAR}\s+(?:\w+\s+){{0,6}}{_MEETING}\b|\b{_MEETING}\b[^\n]{{0,40}}\b{_YEAR}\b", True),
        (rf"\baccepted\W{{0,4}}{_DAYS}(?:{MONTH}\s*)?{_DAYS}{_YEAR}", True),
        (rf"\b(?:revised|received|submitted)\W{{0,4}}(?:(?:on|in)\s+)?{_DAYS}(?:{MONTH}\s*)?{_DAYS}{_YEAR}", False),
        (rf"\b[A-Z]{{3,8}}\s?{_SHORT}(?=[\s,.;:)]|$)", False),
        (rf"\b{MONTH},?\s+{_DAYS}{_YEAR}[.\s]*$", False),
        (rf"\bdates? from\s+{_YEAR}", False),
        (r"\bdraft[\s:,]+\d{1,2}/(\d\d)\b", False),
        (rf"^[^\n]{{0,80}}\({_YEAR}\)\.", False),
        (rf"^\W*{_YEAR}\W*$", False),
    )
)
_MAY_DATE = re.compile(r"(?:18|19|20)\d\d|[’'‘`/]\s?\d\d")
_SKIPPED_LINES = "-" * 9  # stands for the lines left out
REFERENCES = re.compile(r"^\W{0,3}(?:\d{1,2}\.?\s+)?(?:references|bibliography|literature cited)\s*$", re.I | re.M)
_LATEST = 2030
_PLAUSIBLE = range(1800, 2100)
_CITED = re.compile(r"(?<![\d.,/:–-])((?:19|20)\d\d)(?![\d/:]|[.,]\d)")


def find_year(text: str, arxiv: str, created: str, cited: str, stated: int | None = None) -> Field[int | None]:
    """The year of the clearest date, and whether it is certain.

    text: the text of the first pages. arxiv: the paper's identifier or "". created: the PDF's date, "D:20180830...".
    cited: the end of the paper's text, with its references. stated: the year that the paper gives for its journal or
    conference; it also holds for a later version on arXiv.
    """
    years = list(_printed(text[: limits.FRONT_CHARACTERS]))
    published = _DATES[0][0].search(text[: limits.FRONT_CHARACTERS])
    if stated and (not published or str(stated) in published.group()):
        return Field(stated, "page", True)
    if years:
        year, sure = years[0]
        # Another year on the same page means a reprint, a revision or a later version, so the year is uncertain.
        other_years = {other for other, is_sure in years if is_sure}
        if _DATES[0][0].search(text):  # the copyright line may give the year before or after
            other_years = {other for other in other_years if abs(other - year) > 1} | {year}
        if arxiv:
            other_years.add(_arxiv_year(arxiv))
        return Field(year, "page", sure and other_years == {year})
    if arxiv:
        return Field(_arxiv_year(arxiv), "identifier", True)
    return _guessed(created, cited)


def _arxiv_year(identifier: str) -> int:
    """The year in its first two digits: 2023 for "2301.01234", 1999 for "hep-th/9901001"."""
    digits = int(identifier.rpartition("/")[2][:2])
    return (1900 if digits > 90 else 2000) + digits


def _printed(text: str) -> list[tuple[int, bool]]:
    """The years that match the patterns, the clearest first."""
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
    """The lines that may contain a year, each with the line before it."""
    lines = text.split("\n")
    dated: list[str] = []
    for before, line in pairwise(["", *lines]):
        if _MAY_DATE.search(line):
            dated += [_SKIPPED_LINES, before, line] if not dated or dated[-1] is not before else [line]
    return "\n".join(dated)


def _guessed(created: str, cited: str) -> Field[int | None]:
    """The year in which the file was made, or the latest cited year if that is clearly older (a scan, a later copy)."""
    match = re.match(r"(?:D:)?(?:\D*\d{1,2}\D[\d: ]*)?((?:19|20)\d\d)", created)
    year = int(match[1]) if match else None
    headings = list(REFERENCES.finditer(cited))
    references = cited[headings[-1].end() :] if headings else cited
    counts = Counter(map(int, _CITED.findall(references)))
    latest_first = sorted((cited_year for cited_year in counts if cited_year <= (year or _LATEST)), reverse=True)
    # A number that occurs once may be a page or a size.
    repeated = (cited_year for cited_year in latest_first if counts[cited_year] > 1)
    latest = next(repeated, latest_first[0] if latest_first else None)
    if year is None:
        return Field(latest, "cited works") if latest else Field(None)
    if latest is not None and sum(counts.values()) > 3 and year - latest > 2:
        return Field(latest, "cited works")
    return Field(year, "file date")
