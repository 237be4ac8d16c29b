"""Exports papers as BibTeX or CSL-JSON, and lists what an answer cites: pages with quotes, references. Pure.

Fields that are not sure are left out, with a comment or a note that says so. Text is UTF-8; citation keys are ASCII
unless a person chose another. Fields for arXiv follow https://info.arxiv.org/help/hypertex/bibstyles/index.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from folio.answer.markers import printable
from folio.answer_types import Citation, Quote
from folio.bibliography import further
from folio.bibliography.entries import BIBTEX_TYPES, CSL_NAMES, FROM_CSL, OF_AN_INSTITUTION, is_arxiv
from folio.bibliography.latex import brace_depths, to_latex
from folio.papers.citation_key import OTHERS, own_key
from folio.papers.label import published_in, sure_venue, sure_year
from folio.papers.metadata import AND_OTHERS, FIELDS, MASTER, PHD, TECHNICAL, Metadata, PersonName
from folio.papers.model import Paper
from folio.shown_text import name_line, plain_line
from folio.text import one_line

MAX_LABEL = 40  # characters of a printed page label
MAX_AUTHORS = 3  # named in a reference; more become "et al."
_LONGEST = 1_000  # characters of a value
_LONGEST_ABSTRACT = 20_000
# Words that BibTeX would split or rearrange, as in the name of an organisation
_SPLITTABLE = re.compile(r",|\band\b", re.I)
_VENUES = {
    "article": "journal", "inproceedings": "booktitle", "incollection": "booktitle", "phdthesis": "school",
    "mastersthesis": "school", "techreport": "institution",
}  # fmt: skip
_ROUND = str.maketrans("{}", "()")  # braces would end a field
_IN_FILE, _BACKSLASHED = re.compile(r"[\\:;]"), r"\\\g<0>"
_LESS_THAN_PHD = re.compile(r"master|bachelor|diplom|licen[cs]", re.I)
_CONFERENCE = re.compile(r"\b(?:proceedings (?:of|in)|conference|symposium|workshop)\b", re.I)
_RANGE = re.compile(r"(?<=\d)-(?=\d)")
_JOURNAL = re.compile(
    r"\b(?:journal|transactions|letters|annals|reviews?|bulletin|magazine|archives|zeitschrift|revue|acta)\b"
    r"|\bproceedings of the (?:national|royal|ieee$)",
    re.I,
)
_ENTRY = re.compile(r"@([A-Za-z]{1,40})\s*\{[^,{}\s]*,(.*)\}", re.S)
_OWN_TYPE = ("phdthesis", "mastersthesis", "techreport")
# Folio's fields in a publisher's entry
_ADDED = ("eprint", "archivePrefix", "primaryClass", "note", "abstract", "keywords", "categories", "file")
_PEOPLE = ("person", "zotero", "bibliography")  # origins that outrank the publisher
_NAMED = ("title", "authors", "year", "venue", "doi", "arxiv", "volume", "issue", "pages", "publisher", "url")
_EMPTY: Mapping[str, Any] = {
    "authors": (), "year": None, "categories": (), "tags": (), "collections": (), "further": ()
}  # fmt: skip
# Where a field was read, in words
_READ = {
    "page": "from the first page", "pdf metadata": "from the PDF's metadata", "identifier": "from its identifier",
    "file date": "from the file's date", "cited works": "from the works it cites", "file name": "from the file's name",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CitedPage:
    """A cited page with its quotes."""

    paper: str  # SHA-256 of its file
    file: str
    title: str
    page: int
    label: str
    quotes: tuple[tuple[str, float], ...]  # each with its support
    sections: tuple[str, ...] = ()  # of the quotes, in words
    zotero: str = ""  # the link that opens the page in Zotero, if the paper is there
    published: str = ""  # venue and year, if sure
    notice: str = ""  # of a retraction or a correction, in words

    @property
    def where(self) -> str:
        return page_and_label(self.page, self.label)


def page_and_label(page: int, label: str) -> str:
    """A page as people write it: "p. 7", "p. 7 (printed iv)"."""
    if label in ("", str(page)):
        return f"p. {page}"
    return f"p. {page} (printed {name_line(label, MAX_LABEL)})"


def cited_pages(citations: Iterable[Quote]) -> tuple[CitedPage, ...]:
    """The distinct cited pages, in the order of the answer."""
    return merge_by_page(
        CitedPage(
            cited.paper.id,
            cited.paper.file,
            cited.paper.title,
            cited.page,
            cited.label,
            ((cited.quote, cited.support if isinstance(cited, Citation) else 1.0),),
            tuple(filter(None, [cited.section])),
            published=published_in(sure_venue(cited.paper.metadata), sure_year(cited.paper.metadata)),
            notice=cited.paper.flag.text if cited.paper.flag else "",
        )
        for cited in citations
    )


def merge_by_page(parts: Iterable[CitedPage]) -> tuple[CitedPage, ...]:
    """The distinct pages in order of first occurrence, each with all its quotes."""
    pages: dict[tuple[str, int], CitedPage] = {}
    for part in parts:
        known = pages.setdefault((part.paper, part.page), part)
        quotes = tuple({**dict(known.quotes), **dict(part.quotes)}.items())
        sections = tuple(dict.fromkeys((*known.sections, *part.sections)))
        pages[part.paper, part.page] = replace(known, quotes=quotes, sections=sections)
    return tuple(pages.values())


def stands_in(quote: str, texts: Iterable[str]) -> bool:
    """Whether one of these texts contains the quote word for word."""
    line = one_line(quote)
    return any(line in one_line(text) for text in texts)


def reference(paper: Paper, pages: Sequence[int]) -> str:
    """One line: "A. Otter and B. Seal (2021). On Sea Otters. Sea Life. otters.pdf, pp. 1, 3". pages: physical."""
    *others, last = map(name_line, paper.authors) if paper.authors else ("",)
    who = f"{', '.join(others)} and {last}" if others else last
    if len(paper.authors) > MAX_AUTHORS:
        who = f"{others[0]} et al."
    when = f"({paper.year})" if paper.year else ""
    place = f"arXiv:{paper.arxiv}" if paper.arxiv else name_line(paper.file)
    names = " ".join(filter(None, [who, when]))
    line = reference_line(names, name_line(paper.title), place, pages, name_line(sure_venue(paper.metadata)))
    return f"{line}. {paper.flag.text}" if paper.flag else line


def reference_line(who: str, title: str, place: str, pages: Sequence[int], venue: str = "") -> str:
    """A reference from its parts, which may be empty, except the place."""
    names = "".join(f"{part.strip().rstrip('.')}. " for part in (who, title, venue) if part.strip())
    listed = ", ".join(map(str, pages))
    on_pages = f", {'p.' if len(pages) == 1 else 'pp.'} {listed}" if pages else ""
    return one_line(f"{names}{place}{on_pages}")


def bibtex(paper: Paper, key: str = "", *, full: bool = False, published: str = "") -> str:
    """A paper as a BibTeX entry, with a comment on each field that is not sure.

    key: instead of the paper's own. full: with abstract, tags and file, for another program's library. published: the
    publisher's entry, which is used unless a person has said something else (works.publishers_bibtex).
    """
    entry_type = bibtex_type(paper.metadata)
    about = _sure(paper.metadata)
    kind_of_report = about["genre"] not in ("", PHD, MASTER, TECHNICAL)
    title = _latex(about["title"])
    flag = _latex(paper.flag.note) if paper.flag else ""
    kept = _kept(about)
    if about["arxiv"] and is_arxiv(about["venue"]):
        about["venue"] = ""  # the eprint says it
    fields = {
        "author": plain_line(" and ".join(map(_bibtex_name, about["authors"]))),  # joined names must not look like [1]
        "title": f"{{{title}}}" if title else "",  # the inner braces keep its capitals
        _VENUES.get(entry_type) or _VENUES.get(FROM_CSL.get(about["kind"], ""), "howpublished"): _latex(about["venue"]),
        "year": str(about["year"] or ""),
        "type": _latex(about["genre"]) if kind_of_report and entry_type in _OWN_TYPE else "",
        "volume": _latex(about["volume"]),
        "number": _latex(about["issue"]),
        "pages": _latex(_RANGE.sub("–", about["pages"])).replace("–", "--"),
        "publisher": _latex(about["publisher"]) if about["publisher"] not in (about["venue"], "arXiv") else "",
        "doi": _verbatim(about["doi"]),
        "eprint": _latex(about["arxiv"]),
        "archivePrefix": "arXiv" if about["arxiv"] else "",
        "primaryClass": _latex(about["categories"][0]) if about["arxiv"] and about["categories"] else "",
        "url": _verbatim(about["url"]),
        "note": ". ".join(dict.fromkeys(filter(None, [flag, _latex(kept.pop("note", ""))]))),
    }
    fields |= {name: value for name, value in _kept_fields(kept).items() if not fields.get(name)}
    if full:
        fields |= {
            "abstract": _latex(about["abstract"], _LONGEST_ABSTRACT),
            "keywords": _latex(", ".join(about["tags"]), _LONGEST_ABSTRACT),
            "categories": _latex(", ".join(about["categories"])),
            "file": f":{_IN_FILE.sub(_BACKSLASHED, _text(paper.file).translate(_ROUND))}:PDF",
        }
    flags = [paper.flag.text] if paper.flag and flag else []  # a publisher's entry may have a note of its own
    comments = "".join(f"% {line.replace('@', '(at)')}\n" for line in [*flags, *_doubts(paper)])
    before = ""
    if entry := _publishers(paper, published):
        entry_type, before = entry
        fields = {name: value for name, value in fields.items() if name in _ADDED and f"{name}=" not in before}
    lines = before + "".join(f"  {name} = {_delimited(name, value)},\n" for name, value in fields.items() if value)
    return f"{comments}@{entry_type}{{{key or own_key(paper)},\n{lines}}}\n"


def _kept_fields(kept: Mapping[str, str]) -> dict[str, str]:
    """The fields of an imported entry that Folio only keeps, for BibTeX."""
    names = (name for name in kept if name != further.TYPE and not name.startswith(further.CSL_ONLY))
    return {
        name: plain_line(" and ".join(map(_bibtex_name, further.people(kept[name]))))
        if name in further.PEOPLE
        else _latex(kept[name])
        for name in names
    }


def _delimited(name: str, value: str) -> str:
    """A value in braces; a month by BibTeX's own name, which styles write in their language."""
    is_month = name == "month" and (value in further.MONTHS or value.isdecimal()) and further.month_number(value)
    return further.MONTHS[is_month - 1] if is_month else f"{{{value}}}"


def _publishers(paper: Paper, published: str) -> tuple[str, str] | None:
    """The type and the fields of a publisher's entry; None if it differs from the metadata shown."""
    about = paper.metadata
    match = _ENTRY.fullmatch(published.strip())
    if not match or about.title.origin != "crossref" or any(getattr(about, name).origin in _PEOPLE for name in _NAMED):
        return None
    fields = plain_line(printable(match[2])).strip().rstrip(",")
    depths = [0, *brace_depths(fields)]
    is_balanced = min(depths) == depths[-1] == 0  # otherwise a brace would end the entry too early or too late
    return (match[1].lower(), f"  {fields},\n") if is_balanced else None


def library_bibtex(papers: Sequence[Paper], keys: Mapping[str, str], published: Mapping[str, str]) -> str:
    """Papers as one BibTeX file.

    keys: paper id -> citation key (Library.citation_keys). published: paper id -> the publisher's entry
    (works.publishers_bibtex).
    """
    return "\n".join(
        bibtex(paper, keys[paper.id], full=True, published=published.get(paper.id, "")) for paper in papers
    )


def library_csl_json(papers: Sequence[Paper], keys: Mapping[str, str]) -> str:
    """Papers as one CSL-JSON file. keys: see library_bibtex."""
    return json.dumps([csl_item(paper, keys[paper.id]) for paper in papers], ensure_ascii=False, indent=1) + "\n"


def csl_item(paper: Paper, key: str) -> dict[str, Any]:
    """A paper as a CSL-JSON item; its note lists the fields that are not sure."""
    about = _sure(paper.metadata)
    kind = about["kind"] or BIBTEX_TYPES.get(bibtex_type(paper.metadata))
    venue = "publisher" if kind in OF_AN_INSTITUTION else "container-title"
    kept = _kept(about)
    doubts = _doubts(paper)
    item = {
        "id": key,
        "citation-key": key,
        "type": kind or "document",
        "title": _text(about["title"]),
        "author": list(map(_csl_person, about["authors"])),
        "issued": _date_parts(about["year"], kept),
        "publisher": _text(about["publisher"]),
        venue: _text(about["venue"]) or (_text(about["publisher"]) if venue == "publisher" else ""),
        "genre": _text(about["genre"]),
        "volume": _text(about["volume"]),
        "number" if kind == "report" else "issue": _text(about["issue"]),
        "page": _text(about["pages"]),
        "DOI": _text(about["doi"]),
        "archive": "arXiv" if about["arxiv"] else "",
        "archive_location": _text(about["arxiv"]),
        "URL": _text(about["url"]),
        "abstract": _text(about["abstract"], _LONGEST_ABSTRACT),
        "keyword": _text(", ".join(about["tags"]), _LONGEST_ABSTRACT),
        "categories": list(map(_text, about["categories"])),
        "note": ". ".join(filter(None, [paper.flag.note if paper.flag else "", _text(kept.pop("note", "")), *doubts])),
    }
    return {name: value for name, value in (_kept_variables(kept) | item).items() if value}


def _kept(about: Mapping[str, Any]) -> dict[str, str]:
    """The fields of an entry that Folio only keeps, with the month and the day of the date if the year is the same."""
    kept = dict(about["further"])
    year, _, rest = about["date"].partition("-")
    if not rest or year != str(about["year"] or year):
        return kept
    month, _, day = rest.partition("-")
    return {"month": further.MONTHS[int(month) - 1], **({"day": str(int(day))} if day else {}), **kept}


def _date_parts(year: int | None, kept: Mapping[str, str]) -> dict[str, Any] | None:
    """The date of a work: its year, its month and day if they are known."""
    if not year:
        return None
    month, day = further.month_number(kept.get("month", "")), kept.get("day", "")
    return {"date-parts": [[year, *([month] if month else []), *([int(day)] if month and day.isdecimal() else [])]]}


def _kept_variables(kept: Mapping[str, str]) -> dict[str, Any]:
    """The fields of an imported entry that Folio only keeps, for CSL."""
    names = {name: CSL_NAMES.get(name, name.removeprefix(further.CSL_ONLY)) for name in kept}
    return {
        csl: list(map(_csl_person, further.people(kept[name]))) if name in further.PEOPLE else _text(kept[name])
        for name, csl in names.items()
        if csl != name or name in CSL_NAMES
    }


def _csl_person(name: PersonName) -> dict[str, str]:
    return {"literal": "others"} if name == AND_OTHERS else _csl_name(name)


def _csl_name(name: PersonName) -> dict[str, str]:
    if not name.given:
        return {"literal": _text(name.family)}
    return {"family": _text(name.family), "given": _text(name.given)}


def _sure(metadata: Metadata) -> dict[str, Any]:
    """The value of every field; an empty value where the field is not sure."""
    fields = {name: getattr(metadata, name) for name in FIELDS}
    return {name: field.value if field.sure else _EMPTY.get(name, "") for name, field in fields.items()}


def _doubts(paper: Paper) -> list[str]:
    """A line on each omitted field: "year not sure: 1998 (from the file's date)"."""
    lines = []
    for name in _NAMED:
        field = getattr(paper.metadata, name)
        value = ", ".join(map(str, field.value)) if isinstance(field.value, tuple) else str(field.value or "")
        if value.strip() and not field.sure:
            label = {"doi": "DOI", "arxiv": "arXiv"}.get(name, name)
            origin = f" ({_READ[field.origin]})" if field.origin in _READ else ""
            lines.append(f"{label} not sure: {name_line(printable(value))}{origin}")
    return lines


def bibtex_type(metadata: Metadata) -> str:
    """The type of a paper's BibTeX entry, by its kind, else by its venue; "misc" if neither is sure."""
    about = _sure(metadata)
    if about["kind"] == "thesis" and _LESS_THAN_PHD.search(about["genre"]):
        return "mastersthesis"
    if not about["kind"] and about["venue"]:
        if about["volume"] or about["issue"] or _JOURNAL.search(about["venue"]):
            return "article"
        return "inproceedings" if _CONFERENCE.search(about["venue"]) else "misc"
    stated = dict(about["further"]).get(further.TYPE, "")
    return stated if stated and BIBTEX_TYPES.get(stated) == about["kind"] else FROM_CSL.get(about["kind"], "misc")


def _text(text: str, longest: int = _LONGEST) -> str:
    return name_line(printable(text), longest)


def _latex(text: str, longest: int = _LONGEST) -> str:
    """Text on one line, escaped for LaTeX."""
    return to_latex(_text(text, longest))


def _bibtex_name(name: PersonName) -> str:
    """A name for BibTeX, family first. Braces protect names that BibTeX would split wrongly."""
    family, given = _latex(OTHERS.sub("", name.family)), _latex(OTHERS.sub("", name.given))
    if name == AND_OTHERS or not (family or given):
        return "others"
    if not given or _SPLITTABLE.search(given):
        return f"{{{f'{given} {family}'.strip()}}}"
    return f"{{{family}}}, {given}" if _SPLITTABLE.search(family) else f"{family}, {given}"


def _verbatim(text: str) -> str:
    """An address or an identifier, which LaTeX prints verbatim; characters that would end the field are escaped."""
    return re.sub(r"[{}\\\s\"]", lambda match: f"%{ord(match.group()) % 256:02X}", _text(text))
