"""The PDF attachments of a Zotero library, with what Zotero knows about each.

Tables and columns are those of Zotero 5 and newer. Nothing is ever written to Zotero's folder.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from folio.errors import UsageError
from folio.papers.identifiers import (
    ARXIV_ADDRESS,
    ARXIV_DOI,
    ARXIV_ID,
    ARXIV_NEW,
    ARXIV_VERSION,
    DOI_ADDRESS,
    DOI_START,
)
from folio.papers.metadata import Field, Metadata, PersonName
from folio.papers.people import typed_names
from folio.text import one_line
from folio.zotero import better_bibtex, database
from folio.zotero.annotations import Annotation, read_annotations
from folio.zotero.database import Tables
from folio.zotero.files import DATABASE, DataFolder, attachment_file
from folio.zotero.link import is_item, is_key

# Characters of one field and of the abstract
LONGEST, LONGEST_ABSTRACT = 2000, 20_000
_MOST_CREATORS, _MOST_TAGS, _MOST_COLLECTIONS = 5000, 500, 200  # of one paper
_DEEPEST = 100  # nested collections
# Attachments that have a file, and the items that they belong to; a bare file has no such item.
_FILES = "SELECT itemID FROM itemAttachments WHERE linkMode IN (0, 1, 2)"
_PARENTS = "SELECT parentItemID FROM itemAttachments WHERE linkMode IN (0, 1, 2) AND parentItemID IS NOT NULL"
_OWNERS = f"({_FILES} UNION {_PARENTS})"
# The type of a PDF. Browsers and servers give some PDFs another one, so the ending of the name counts too.
PDF_TYPE, _PDF_NAME = "application/pdf", re.compile(r"\.pdf\Z", re.I)
# The types of other files -> their kinds, in words
_OTHER_KINDS = {"application/epub+zip": "EPUB", "text/html": "web page", "application/xhtml+xml": "web page"}

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
# The names of title, venue and number differ between types; the first field that an item has counts.
_TITLES = ("title", "caseName", "nameOfAct", "subject")
_VENUES = (
    "publicationTitle", "proceedingsTitle", "bookTitle", "encyclopediaTitle", "dictionaryTitle", "websiteTitle",
    "blogTitle", "forumTitle", "programTitle", "university", "institution", "conferenceName", "meetingName",
    "repository",
)  # fmt: skip
_PUBLISHERS = ("publisher", "university", "institution", "repository", "distributor", "company")
_ISSUES = ("issue", "number", "reportNumber")
# The roles that count as authors: the first role that an item has
_CREATORS = (
    "author", "editor", "inventor", "presenter", "programmer", "director", "artist", "interviewee", "podcaster",
    "cartographer", "performer", "sponsor", "contributor",
)  # fmt: skip
_GENRES = ("thesisType", "reportType")
# Fields that are only kept for exports (Metadata.further) -> their names in BibTeX
_FURTHER = {
    "series": "series", "seriesTitle": "series", "edition": "edition", "place": "address", "ISBN": "isbn",
    "ISSN": "issn", "language": "language", "numPages": "pagetotal", "shortTitle": "shorttitle",
    "journalAbbreviation": "shortjournal",
}  # fmt: skip
FIELDS = (
    *_TITLES, *_VENUES, *_PUBLISHERS, *_ISSUES, *_GENRES, *_FURTHER, "date", "DOI", "url", "volume", "pages",
    "abstractNote", "citationKey", "archiveID", "extra",
)  # fmt: skip
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
# The markup that Zotero allows in titles
_MARKUP = re.compile(r"</?(?:i|b|sub|sup)>|</?span(?: (?:class|style)=\"[^\"<>]{0,100}\")?>")
_EXTRA = re.compile(r"^[ \t]*(citation[ ]?key|doi|arxiv)[ \t]*:[ \t]*(\S{1,200})", re.I | re.M)
# Everything after the beginning of a DOI is kept
_DOI = re.compile(rf"(?:{DOI_ADDRESS}|doi:\s*)?({DOI_START}\S{{1,300}})", re.I)
_ARXIV = re.compile(rf"(?:{ARXIV_ADDRESS}|{ARXIV_DOI}|arxiv:\s*)({ARXIV_ID})", re.I)
_NEW_ARXIV = re.compile(rf"{ARXIV_NEW}(?:{ARXIV_VERSION})?")
# "2014-06-00 June 2014": the date in figures, with zeros for unknown parts, then the date as typed
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)\b")
_TYPED_YEAR = re.compile(r"(?<!\d)(1[4-9]\d\d|20\d\d)(?!\d)")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A PDF in Zotero, outside the trash."""

    path: Path  # absolute; the file may be missing
    metadata: Metadata  # of its item; a bare file has only link, tags and collections
    content_type: str = PDF_TYPE
    annotations: tuple[Annotation, ...] = ()

    @property
    def link(self) -> str:
        """The attachment's place in Zotero: "library/items/KEY"."""
        return self.metadata.zotero.value


@dataclass(frozen=True, slots=True)
class ZoteroLibrary:
    """The attachments of a data folder, those of the user's own library first, then in the order they were added."""

    folder: Path
    attachments: tuple[Attachment, ...]
    unusable: Mapping[str, str]  # attachments with an invalid path: link -> path in Zotero
    trashed: Mapping[str, Path | None]  # attachments in the trash: link -> path
    others: tuple[tuple[str, Attachment], ...] = ()  # files that are no PDFs, each after its kind in words
    problem: str = ""  # why the keys of Better BibTeX could not be read

    def names(self) -> dict[Path, str]:
        """Each file with the name shown to people: with its key where several files have the same name."""
        counts = Counter(path.name for path in {each.path for each in self.attachments})
        return {
            each.path: each.path.name if counts[each.path.name] == 1 else f"{each.link[-8:]}/{each.path.name}"
            for each in reversed(self.attachments)
        }


@dataclass(frozen=True, slots=True)
class _Row:
    """An attachment as the tables have it."""

    item: int
    parent: int | None
    library: int
    link_mode: int
    content_type: str
    path: str
    key: str

    @property
    def is_pdf(self) -> bool:
        return self.content_type == PDF_TYPE or bool(_PDF_NAME.search(self.path))


@dataclass(frozen=True, slots=True)
class Creator:
    """An author or another contributor; `last` alone is an institution, or a person with one name."""

    role: str  # "author", "editor", ...
    last: str
    first: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A work as Zotero's database describes it."""

    kind: str = ""  # "journalArticle", ...
    fields: Mapping[str, str] | None = None
    creators: Sequence[Creator] = ()  # in order
    citation_key: str = ""  # from Better BibTeX


def read_library(folder: DataFolder) -> ZoteroLibrary:
    """Read Zotero's library. Raises UsageError if it is unreadable, damaged or older than Zotero 5; DiskFull."""
    with database.opened(folder.path / DATABASE) as tables:
        rows = _attachments(tables)
        places = _libraries(tables)
        trash = {item for (item,) in tables.rows("SELECT itemID FROM deletedItems")}
        keys, problem = _better_bibtex(folder.path)
        items = _items(tables, keys)
        tags, collections = _tags(tables), _collections(tables)
        annotations = read_annotations(tables, trash)
    attachments: list[Attachment] = []
    others: list[tuple[str, Attachment]] = []
    unusable: dict[str, str] = {}
    trashed: dict[str, Path | None] = {}
    for row in sorted(rows, key=lambda row: (places.get(row.library) != "library", row.item)):
        link = f"{places.get(row.library)}/items/{row.key}"
        if not is_item(link):
            continue
        path = attachment_file(folder.path, row.key, row.link_mode, row.path, folder.attachments)
        is_trash = row.item in trash or row.parent in trash
        if row.is_pdf and (is_trash or path is None):
            if is_trash:
                trashed[link] = path
            else:
                unusable[link] = text(row.path)
        elif path is not None and not is_trash:
            owners = (row.parent, row.item) if row.parent is not None else (row.item,)
            item = items.get(row.parent, Item()) if row.parent is not None else Item()
            names = ([name for owner in owners for name in of.get(owner, ())] for of in (tags, collections))
            of_it = annotations.get(row.item, ())
            attachment = Attachment(path, metadata(item, link, *names), row.content_type, of_it)
            if row.is_pdf:
                attachments.append(attachment)
            else:
                others.append((_OTHER_KINDS.get(row.content_type, "other file"), attachment))
    return ZoteroLibrary(folder.path, tuple(attachments), unusable, trashed, tuple(others), problem)


def _better_bibtex(folder: Path) -> tuple[dict[tuple[int, str], str], str]:
    """The keys of Better BibTeX, and why they could not be read; they are not needed."""
    try:
        return better_bibtex.read_keys(folder), ""
    except UsageError as error:
        return {}, error.happened


def _attachments(tables: Tables) -> list[_Row]:
    sql = f"""SELECT a.itemID, a.parentItemID, i.libraryID, a.linkMode, substr(a.contentType, 1, 200),
        substr(a.path, 1, 5000), i.key
        FROM itemAttachments a JOIN items i ON i.itemID = a.itemID WHERE a.itemID IN ({_FILES})"""
    return [
        _Row(item, parent, library, mode, text(kind), path if type(path) is str else "", key)
        for item, parent, library, mode, kind, path, key in tables.rows(sql)
        if type(item) is type(library) is type(mode) is int
        and (parent is None or type(parent) is int)
        and type(key) is str
        and is_key(key)
    ]


def _libraries(tables: Tables) -> dict[int, str]:
    """Library -> the beginning of its links. Feeds are left out, because their items come and go."""
    users = tables.rows("SELECT libraryID FROM libraries WHERE type = 'user'")
    groups = tables.rows(
        "SELECT g.libraryID, g.groupID FROM groups g JOIN libraries l ON l.libraryID = g.libraryID"
        " WHERE l.type = 'group'"
    )
    return {library: f"groups/{group}" for library, group in groups} | {library: "library" for (library,) in users}


def _items(tables: Tables, keys: Mapping[tuple[int, str], str]) -> dict[int, Item]:
    """Item -> what is known about it. keys: library and key of an item -> its citation key in Better BibTeX."""
    wanted = ", ".join(f"'{name}'" for name in FIELDS)
    longest = max(LONGEST, LONGEST_ABSTRACT) + 1
    fields: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for item, name, value in tables.rows(
        f"""SELECT d.itemID, f.fieldName, substr(v.value, 1, {longest}) FROM itemData d
            JOIN fields f ON f.fieldID = d.fieldID JOIN itemDataValues v ON v.valueID = d.valueID
            WHERE f.fieldName IN ({wanted}) AND d.itemID IN ({_PARENTS})"""
    ):
        if type(value) is str:
            fields[item][name] = value
    creators: defaultdict[int, list[Creator]] = defaultdict(list)
    for item, role, last, first, mode in tables.rows(
        f"""SELECT ic.itemID, t.creatorType, substr(c.lastName, 1, 500), substr(c.firstName, 1, 500), c.fieldMode
            FROM itemCreators ic JOIN creators c ON c.creatorID = ic.creatorID
            JOIN creatorTypes t ON t.creatorTypeID = ic.creatorTypeID
            WHERE ic.itemID IN ({_PARENTS}) ORDER BY ic.itemID, ic.orderIndex"""
    ):
        creators[item].append(Creator(text(role), text(last), "" if mode == 1 else text(first)))
    kinds = tables.rows(
        "SELECT i.itemID, t.typeName, i.libraryID, i.key FROM items i JOIN itemTypes t ON t.itemTypeID = i.itemTypeID"
        f" WHERE i.itemID IN ({_PARENTS})"
    )
    return {
        item: Item(text(kind), fields.get(item), creators.get(item, ()), keys.get((library, key), ""))
        for item, kind, library, key in kinds
    }


def _tags(tables: Tables) -> dict[int, list[str]]:
    """Item -> its tags by name, manual tags before imported ones."""
    return _grouped(
        tables.rows(
            f"""SELECT t.itemID, substr(n.name, 1, {LONGEST}) FROM itemTags t JOIN tags n ON n.tagID = t.tagID
            WHERE t.itemID IN {_OWNERS} ORDER BY t.itemID, t.type = 1, n.name"""
        )
    )


def _collections(tables: Tables) -> dict[int, list[str]]:
    """Item -> the paths of its collections, by name, without trashed collections."""
    is_trash_known = "deletedCollections" in tables.names  # since Zotero 6
    trash = {one for (one,) in tables.rows("SELECT collectionID FROM deletedCollections")} if is_trash_known else set()
    known = {
        one: (text(name), above)
        for one, name, above in tables.rows(
            f"SELECT collectionID, substr(collectionName, 1, {LONGEST}), parentCollectionID FROM collections"
        )
    }
    paths = {one: _path(one, known) for one in known if one not in trash}
    inside = tables.rows(f"SELECT itemID, collectionID FROM collectionItems WHERE itemID IN {_OWNERS}")
    named = [
        (item, "/".join(known[step][0] for step in paths[one]))
        for item, one in inside
        if one in paths and not trash.intersection(paths[one])
    ]
    return _grouped(sorted(named, key=itemgetter(1)))


def _path(collection: int, known: Mapping[int, tuple[str, int | None]]) -> list[int]:
    """A collection after the collections that contain it, outermost first; a cycle is followed once."""
    steps: list[int] = []
    above: int | None = collection
    while above is not None and above in known and above not in steps and len(steps) < _DEEPEST:
        steps.append(above)
        above = known[above][1]
    return steps[::-1]


def _grouped(pairs: Iterable[tuple[Any, ...]]) -> dict[int, list[str]]:
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for item, name in pairs:
        if type(item) is int and (line := text(name)):
            groups[item].append(line)
    return groups


def text(value: Any, longest: int = LONGEST) -> str:
    """A value of the database as text on one line; "" if it is neither text nor a number."""
    if type(value) in (int, float):
        value = str(value)
    if type(value) is not str:
        return ""
    return unicodedata.normalize("NFC", one_line(_CONTROL.sub(" ", value[: 2 * longest]))[:longest])


def metadata(item: Item, link: str, tags: Iterable[str] = (), collections: Iterable[str] = ()) -> Metadata:
    """An item as metadata of a paper; every field is sure, because a person keeps it. link: of its attachment."""
    fields = item.fields or {}

    def first(names: Sequence[str]) -> str:
        return next(filter(None, (text(fields.get(name, "")) for name in names)), "")

    extra = {name.lower().replace(" ", ""): value for name, value in reversed(_EXTRA.findall(fields.get("extra", "")))}
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
        "genre": first(_GENRES),
        "volume": first(("volume",)),
        "issue": first(_ISSUES),
        "pages": first(("pages",)),
        "publisher": first(_PUBLISHERS),
        "url": _address(first(("url",))),
        "citation_key": text(fields.get("citationKey", "") or extra.get("citationkey", "") or item.citation_key)
        .partition(" ")[0],
        "tags": _names(tags, _MOST_TAGS),
        "collections": _names(collections, _MOST_COLLECTIONS),
        "further": _further(item),
        "zotero": link,
    }
    return Metadata(**{name: Field(value, "zotero", True) for name, value in values.items() if value})


def _authors(creators: Sequence[Creator]) -> tuple[PersonName, ...]:
    return next(filter(None, (_people(creators, role) for role in _CREATORS)), ())


def _people(creators: Sequence[Creator], role: str) -> tuple[PersonName, ...]:
    names = [(text(one.last), text(one.first)) for one in creators[:_MOST_CREATORS] if one.role == role]
    return tuple(PersonName(last or first, first if last else "") for last, first in names if last or first)


def _further(item: Item) -> tuple[tuple[str, str], ...]:
    """What is only kept for exports, by names of BibTeX."""
    fields = item.fields or {}
    pairs = {bibtex: text(fields.get(name, "")) for name, bibtex in reversed(_FURTHER.items())}
    for role in ("editor", "translator"):
        if _people(item.creators, role) != _authors(item.creators):  # a collection without authors has its editors
            pairs[role] = typed_names(_people(item.creators, role))
    if date := _DATE.match(text(fields.get("date", ""))):
        pairs |= {"month": date[2].lstrip("0"), "day": date[3].lstrip("0")}
    return tuple((name, value) for name, value in pairs.items() if value)


def _year(date: str) -> int | None:
    in_figures = _DATE.match(date)
    if in_figures:
        return int(in_figures[1]) or None
    typed = _TYPED_YEAR.search(date)
    return int(typed[1]) if typed else None


def _arxiv(fields: Mapping[str, str], extra: Mapping[str, str]) -> str:
    for name in ("archiveID", "DOI", "url"):
        if match := _ARXIV.match(text(fields.get(name, ""))):
            return match[1]
    arxiv = extra.get("arxiv", "")
    return arxiv if _NEW_ARXIV.fullmatch(arxiv) else ""


def _address(url: str) -> str:
    return url if re.match(r"(?i)https?://\S+\Z", url) else ""


def _names(names: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(list(dict.fromkeys(filter(None, map(text, names))))[:most])
