"""What became of a work after it came out: retracted, withdrawn, corrected, superseded. Pure.

The words of a notice are Folio's own: nothing of what a service or a paper wrote is in them but a date and a link.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from folio.shown_text import NOTICE_MARKS
from folio.work import SourceName

# The gravest first
NoticeKind = Literal[
    "retraction", "withdrawal", "removal", "partial-retraction", "expression-of-concern", "correction",
    "older-version", "same-paper", "reinstatement", "new-version",
]  # fmt: skip
KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)
# The registrar first
_SAID_BY: dict[SourceName, str] = {
    "crossref": "Crossref", "arxiv": "arXiv", "openalex": "OpenAlex", "semanticscholar": "Semantic Scholar",
}  # fmt: skip
_TRUSTED = tuple(_SAID_BY)
# In capitals: what may make the evidence worthless. An answer that cites it has a warning above it.
_WORDS: dict[NoticeKind, str] = {
    "retraction": "RETRACTED",
    "withdrawal": "WITHDRAWN",
    "removal": "REMOVED",
    "partial-retraction": "PARTLY RETRACTED",
    "expression-of-concern": "EXPRESSION OF CONCERN",
    "correction": "Corrected",
    "reinstatement": "Reinstated",
    "older-version": "Older version",
    "same-paper": "In the index again",
    "new-version": "Newer version",
}
# In a citation, where there is little room: a correction is told with the sources
_MARKED: tuple[NoticeKind, ...] = (
    "retraction",
    "withdrawal",
    "removal",
    "partial-retraction",
    "expression-of-concern",
)
_SHORT: dict[NoticeKind, str] = dict(zip(_MARKED, NOTICE_MARKS, strict=True))
_TAKEN_BACK = ("retraction", "withdrawal", "removal")
_NO_FLAG: tuple[NoticeKind, ...] = ("reinstatement", "new-version")
# Said by no service: what another paper of the library is to this one (paper_versions.py). These are never stored.
_OF_LIBRARY: tuple[NoticeKind, ...] = ("older-version", "same-paper")


@dataclass(frozen=True, slots=True)
class WorkNotice:
    """One thing that became of a work, as one service says it."""

    kind: NoticeKind
    dated: str = ""  # "2021-03-04", "2021-03", "2021"; "" if it is not known
    link: str = ""  # the DOI of the notice, or an arXiv id with its version; "" if it is not known
    source: SourceName = "crossref"

    @property
    def is_grave(self) -> bool:
        """Whether what stands in the work may not be relied on."""
        return self.kind in _SHORT

    @property
    def is_of_library(self) -> bool:
        """Whether it says what another paper of the library is to this one."""
        return self.kind in _OF_LIBRARY

    @property
    def mark(self) -> str:
        """A word for a citation: "RETRACTED"; "" for what needs none there."""
        return _SHORT.get(self.kind, "")

    @property
    def words(self) -> str:
        """ "RETRACTED 2021-03-04", "Corrected 2015-05-04", "Newer version 2301.01234v3 of 2024-01-31"."""
        if self.kind == "new-version":
            when = f"of {self.dated}" if self.dated else ""
            return " ".join(filter(None, [_WORDS[self.kind], self.link, when]))
        return " ".join(filter(None, [_WORDS[self.kind], self.dated]))

    @property
    def text(self) -> str:
        """The same with where it is said: "RETRACTED 2021-03-04 (doi:10.1234/notice)", "RETRACTED (says OpenAlex)".

        "Older version: arXiv:2301.01234v2 is in the index", "In the index again: arXiv:2301.01234v2".
        """
        if self.is_of_library:
            return f"{self.words}: {self._place}{' is in the index' if self.kind == 'older-version' else ''}"
        return self.words if self.kind == "new-version" else f"{self.words} ({self._place})"

    @property
    def without_date(self) -> str:
        """The same for a table whose date is in another column."""
        return f"{_WORDS[self.kind]} ({self._place})"

    @property
    def _place(self) -> str:
        link = f"doi:{self.link}" if self.link.startswith("10.") else self.link and f"arXiv:{self.link}"
        return link or f"says {_SAID_BY[self.source]}"

    @property
    def note(self) -> str:
        """The same for a bibliography: "Retracted: 2021-03-04, doi:10.1234/notice"."""
        if self.is_of_library:
            return self.text
        said = ", ".join(filter(None, [self.dated, self._place]))
        return f"{_WORDS[self.kind].capitalize()}: {said}"


def ordered(notices: Iterable[WorkNotice]) -> tuple[WorkNotice, ...]:
    """The gravest first, of one kind the latest; what several sources say, once: the one with a date and a link."""
    found: dict[tuple[str, str], WorkNotice] = {}
    known = sorted(notices, key=lambda each: (not each.link, not each.dated, _TRUSTED.index(each.source)))
    for each in known:
        found.setdefault((each.kind, each.link), each)
    # Some services say only that a work is retracted, also of one that was withdrawn.
    is_taken_back = any(each.link and each.kind in _TAKEN_BACK for each in found.values())
    told = [each for each in found.values() if each.link or not (is_taken_back and each.kind == "retraction")]
    by_date = sorted(told, key=lambda each: (each.dated, each.link, each.source), reverse=True)
    return tuple(sorted(by_date, key=lambda each: KINDS.index(each.kind)))


def flag(notices: Sequence[WorkNotice]) -> WorkNotice | None:
    """The notice that is shown wherever the work is cited, the gravest; None if there is nothing to warn of.

    A retraction that was undone later is none.
    """
    back = max((each.dated for each in notices if each.kind == "reinstatement"), default="")
    standing = [each for each in ordered(notices) if not (each.is_grave and back and each.dated <= back)]
    return next((each for each in standing if each.kind not in _NO_FLAG), None)
