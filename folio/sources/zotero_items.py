"""An item of Zotero as metadata of a paper: its fields, creators and type in Folio's terms. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from folio.identifiers import ARXIV_ADDRESS, ARXIV_DOI, ARXIV_ID, ARXIV_NEW, ARXIV_VERSION, DOI_ADDRESS, DOI_START
from folio.paper_metadata import Field, Metadata, PersonName
from folio.text import one_line

# Characters of one field and of the abstract; names, tags and collections of one paper
LONGEST, LONGEST_ABSTRACT = 2000, 20_000
_MOST_CREATORS, _MOST_TAGS, _MOST_COLLECTIONS = 5000, 500, 200

# Zotero's types of items -> CSL's, as in Zotero's own translation (zotero/zotero-schema, schema.json)
_KINDS = {
    "artwork": "graphic", "audioRecording": "song", "bill": "bill", "blogPost": "post-weblog", "book": "book",
    "bookSection": "chapter", "case": "legal_case", "computerProgram": "software",
    "conferencePaper": "paper-conference", "dataset": "dataset", "dictionaryEntry": "entry-dictionary",
    "document": "document", "email": "personal_communication", "encyclopediaArticle": "entry-encyclopedia",
    "film": "motion_picture", "forumPost": "post", "hearing": "hearing", "instantMessage": "personal_communication",
    "interview": "interview", "journalArticle": "article-journal", "letter": "personal_communication",
    "magazineArticle": "article-magazine", "manuscript": "manuscript", "map": "map",
    "newspaperArticle": "article-newspaper", "patent": "patent", "podcast": "broadcast", "preprint": "article",
    "presentation": "speech", "radioBroadcast": "broadcast", "report": "report", "standard": "standard",
    "statute": "legislation", "thesis": "thesis", "tvBroadcast": "broadcast", "videoRecording": "motion_picture",
    "webpage": "webpage",
}  # fmt: skip
# Each type names its title, its venue and its number in its own way; the first field that an item has counts.
_TITLES = ("title", "caseName", "nameOfAct", "subject")
_VENUES = (
    "publicationTitle", "proceedingsTitle", "bookTitle", "encyclopediaTitle", "dictionaryTitle", "websiteTitle",
    "blogTitle", "forumTitle", "programTitle", "university", "institution", "conferenceName", "meetingName",
    "repository",
)  # fmt: skip
_PUBLISHERS = ("publisher", "university", "institution", "repository", "distributor", "company")
_ISSUES = ("issue", "number", "reportNumber")
# Whose work it is, the first of these that an item has
_CREATORS = (
    "author", "editor", "inventor", "presenter", "programmer", "director", "artist", "interviewee", "podcaster",
    "cartographer", "performer", "sponsor", "contributor",
)  # fmt: skip
FIELDS = (
    *_TITLES, *_VENUES, *_PUBLISHERS, *_ISSUES, "date", "DOI", "url", "volume", "pages", "abstractNote", "citationKey",
    "archiveID", "extra",
)  # fmt: skip
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
# The markup that Zotero allows in titles
_MARKUP = re.compile(r"</?(?:i|b|sub|sup)>|</?span(?: (?:class|style)=\"[^\"<>]{0,100}\")?>")
_EXTRA = re.compile(r"^[ \t]*(citation[ ]?key|doi|arxiv)[ \t]*:[ \t]*(\S{1,200})", re.I | re.M)
# Whatever Zotero has behind the beginning of a DOI is kept
_DOI = re.compile(rf"(?:{DOI_ADDRESS}|doi:\s*)?({DOI_START}\S{{1,300}})", re.I)
_ARXIV = re.compile(rf"(?:{ARXIV_ADDRESS}|{ARXIV_DOI}|arxiv:\s*)({ARXIV_ID})", re.I)
_NEW_ARXIV = re.compile(rf"{ARXIV_NEW}(?:{ARXIV_VERSION})?")
# "2014-06-00 June 2014": the date in figures, with zeros for what is not known, then as it was typed
_DATE = re.compile(r"(\d{4})-\d\d-\d\d\b")
_TYPED_YEAR = re.compile(r"(?<!\d)(1[4-9]\d\d|20\d\d)(?!\d)")


@dataclass(frozen=True, slots=True)
class Creator:
    """Someone who made an item; `last` alone is an institution, or a person with one name."""

    role: str  # "author", "editor", ...
    last: str
    first: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """What Zotero has about a work, as it stands in the database."""

    kind: str = ""  # "journalArticle", ...
    fields: Mapping[str, str] | None = None
    creators: Sequence[Creator] = ()  # in order


def text(value: Any, longest: int = LONGEST) -> str:
    """A value of the database as text on one line: a number is written out, anything else is no text."""
    if type(value) in (int, float):
        value = str(value)
    if type(value) is not str:
        return ""
    return unicodedata.normalize("NFC", one_line(_CONTROL.sub(" ", value[: 2 * longest]))[:longest])


def metadata(item: Item, link: str, tags: Iterable[str] = (), collections: Iterable[str] = ()) -> Metadata:
    """The item in Folio's terms; every field is sure, for a person has it so. link: its attachment."""
    fields = item.fields or {}

    def first(names: Sequence[str]) -> str:
        return next(filter(None, (text(fields.get(name, "")) for name in names)), "")

    extra = {name.lower().replace(" ", ""): found for name, found in reversed(_EXTRA.findall(fields.get("extra", "")))}
    doi = _DOI.fullmatch(text(fields.get("DOI", ""))) or _DOI.fullmatch(extra.get("doi", ""))
    values: dict[str, Any] = {
        "title": _MARKUP.sub("", first(_TITLES)),
        "authors": _authors(item.creators),
        "year": _year(text(fields.get("date", ""))),
        "venue": first(_VENUES),
        "doi": doi[1] if doi else "",
        "arxiv": _arxiv(fields, extra),
        "abstract": text(fields.get("abstractNote", ""), LONGEST_ABSTRACT),
        "kind": _KINDS.get(item.kind, ""),
        "volume": first(("volume",)),
        "issue": first(_ISSUES),
        "pages": first(("pages",)),
        "publisher": first(_PUBLISHERS),
        "url": _address(first(("url",))),
        "citation_key": text(fields.get("citationKey", "")).partition(" ")[0] or extra.get("citationkey", ""),
        "tags": _names(tags, _MOST_TAGS),
        "collections": _names(collections, _MOST_COLLECTIONS),
        "zotero": link,
    }
    return Metadata(**{name: Field(value, "zotero", True) for name, value in values.items() if value})


def _authors(creators: Sequence[Creator]) -> tuple[PersonName, ...]:
    for role in _CREATORS:
        names = [(text(one.last), text(one.first)) for one in creators[:_MOST_CREATORS] if one.role == role]
        if people := tuple(PersonName(last or first, first if last else "") for last, first in names if last or first):
            return people
    return ()


def _year(date: str) -> int | None:
    in_figures = _DATE.match(date)
    if in_figures:
        return int(in_figures[1]) or None
    typed = _TYPED_YEAR.search(date)
    return int(typed[1]) if typed else None


def _arxiv(fields: Mapping[str, str], extra: Mapping[str, str]) -> str:
    for name in ("archiveID", "DOI", "url"):
        if found := _ARXIV.match(text(fields.get(name, ""))):
            return found[1]
    named = extra.get("arxiv", "")
    return named if _NEW_ARXIV.fullmatch(named) else ""


def _address(url: str) -> str:
    return url if re.match(r"(?i)https?://\S+\Z", url) else ""


def _names(names: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(list(dict.fromkeys(filter(None, map(text, names))))[:most])
