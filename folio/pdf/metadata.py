"""Title, authors, year and arXiv identifier of a paper, from its metadata, its first page and its file name.

When in doubt it returns nothing, because nothing is better than junk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from statistics import median
from typing import Any, NamedTuple

from folio.pdf import limits


class FirstPageLine(NamedTuple):
    """A horizontal line of the first page, in the order of the page's text."""

    top: float  # points from the top of the page
    bottom: float
    size: float  # the largest type size, in points
    text: str
    name_text: str  # the text without superscripts, which mark affiliations


class FrontMatter(NamedTuple):
    title: str
    authors: tuple[str, ...]
    year: int | None


_MAX_TITLE = 300
_MAX_AUTHOR_LINES = 60

# Titles that programs fill in when nobody gave one.
_NO_TITLE = re.compile(
    r"^(?:untitled.*|no title|title|document\d*|microsoft \w+ - .*|powerpoint presentation|slide 1"
    r"|latex with hyperref.*|paper title.*|print|temp|\d[\d\W]*"
    r"|.*\.(?:pdf|docx?|tex|dvi|ps|indd|pptx?|rtf|odt|qxd|eps|wpd)|/.*|[a-z]:\\.*"
    r"|arxiv:\S+.*|doi:?\s*\S+|10\.\d{4,}/\S+)$",
    re.I,
)
_NO_AUTHOR = re.compile(
    r"^(?:unknown|anonymous|author|admin\w*|user|owner|root|latex.*|.*\.com|.*[@/\\\d].*|microsoft.*|adobe.*)$", re.I
)
# Words of addresses and headings: a line with one of them contains no names.
_NOT_A_NAME = re.compile(
    r"universi|institut|departm|laborator|school|college|centre|center|faculty|academy|hospital|research|science|group"
    r"|division|ministry|inc\b|ltd\b|gmbh|corp\b|abstract|introduction|summary|journal|proceedings|conference|volume"
    r"|published|received|accepted|edited|review|editor|copyright|license|version|draft|street|avenue|http|www"
    r"|report|technical|article|paper|preprint|keywords|contents|chapter|manual|guide|overview"
    r"|january|february|march\b|april\b \d|june \d|july \d|august \d|september|october|november|december"
    r"|[@=<>/\\{}\[\]:?!]|\d{2}",
    re.I,
)
_PARTICLES = frozenset(
    re.findall(
        r"\S+",
        "al ap bin da dal das de del della den der des di do dos du e el ibn la le los ten ter van vel von y zu zur 't",
    )
)
# Marks after authors: footnote signs, affiliation numbers, and the ORCID icon, whose text is "ID".
_MARKS = re.compile(r"[\d*\u2217†‡§¶‖#⋆★✉⇤≀◇♠♣♥♦⟂⊥]+|\bID\b|\biD\b|(?<=\w)[⁰¹²³⁴-⁹]+|\(cid:\d+\)")
_BETWEEN_NAMES = re.compile(r"\s*(?:[,;·•|]\s*(?:and|&)\s+|[,;·•|]|\s(?:and|&|und|et)\s)\s*")
_NAME_WORD = re.compile(r"^(?:[^\W\d_]\.?-?|[^\W\d_][^\W\d_.'\u2019\u02bc-]*(?:[.'\u2019\u02bc-]+[^\W\d_]+)*\.?)$")

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR = r"((?:18|19|20)\d\d)\b"
# From the clearest statement of the publication date to mere hints.
_DATES = tuple(
    re.compile(pattern, re.I | re.M)
    for pattern in (
        rf"\bpublished(?:\s+online)?\W{{0,4}}(?:(?:on|in)\s+)?(?:\d{{1,2}}\s+)?(?:{_MONTH}\s*)?(?:\d{{1,2}},?\s+)?{_YEAR}",
        rf"\barXiv:\S+\s+(?:\[[\w.-]+\]\s+)?\d{{1,2}}\s+{_MONTH}\s+{_YEAR}",
        rf"(?:©|\(c\)|\bcopyright)\s*(?:by\s+|the\s+authors?,?\s+)?{_YEAR}",
        rf"\baccepted\W{{0,4}}(?:\d{{1,2}}\s+)?(?:{_MONTH}\s*)?(?:\d{{1,2}},?\s+)?{_YEAR}",
        rf"^\s*(?:\d{{1,2}}\s+)?{_MONTH}\s+(?:\d{{1,2}},?\s+)?{_YEAR}\s*$",
        rf"^[^\n]{{0,80}}\({_YEAR}\)\.",
    )
)

# arXiv identifiers since April 2007, "2301.01234", and before, "hep-th/9901001".
_NEW_ID = r"\d{4}\.\d{4,5}"
_OLD_ARCHIVE = (
    "(?:acc-phys|adap-org|alg-geom|ao-sci|astro-ph|atom-ph|bayes-an|chao-dyn|chem-ph|cmp-lg|comp-gas|cond-mat|cs|dg-ga"
    "|funct-an|gr-qc|hep-ex|hep-lat|hep-ph|hep-th|math|math-ph|mtrl-th|nlin|nucl-ex|nucl-th|patt-sol|physics|plasm-ph"
    r"|q-alg|q-bio|quant-ph|solv-int|stat|supr-con)(?:\.[A-Z]{2})?"
)
_OLD_ID = rf"{_OLD_ARCHIVE}/\d{{7}}"
_ID = rf"(?:{_NEW_ID}|{_OLD_ID})"
_ID_VERSION = r"[ \t]?v\d{1,2}"
_CATEGORY = r"\s+\[[A-Za-z.-]+\]"
_DAY = rf"\s+\d{{1,2}}\s+(?i:{_MONTH})\s+(?:19|20)\d\d\b"
# The stamp in the margin: "arXiv:2301.01234v1 [cs.CL] 3 Jan 2023"; in its early years without the archive.
_STAMP = re.compile(rf"arXiv:({_NEW_ID}{_ID_VERSION}(?={_CATEGORY})|{_OLD_ID}{_ID_VERSION})(?:{_CATEGORY})?{_DAY}")
_ADDRESS = re.compile(
    rf"(?:https?://)?(?:(?:www\.|export\.)?arxiv\.org/(?:abs|pdf)/|(?:doi\.org/)?10\.48550/(?i:arxiv)\.)"
    rf"({_ID}(?:{_ID_VERSION})?)(?:\.pdf)?"
)
_FILE_NAME = re.compile(rf"(?:(?i:arxiv)[-_. ]?)?({_NEW_ID}(?:v\d{{1,2}})?)")
_VERSIONED = re.compile(r"v\d+$")


def front_matter(
    metadata: Mapping[str, str], first_page: Callable[[], Sequence[FirstPageLine]], text: str
) -> FrontMatter:
    """Title, authors and year; "", () and None if nothing sensible is found.

    metadata: as in PDFs: title, author, creationDate ("D:20180830..."). first_page: returns the lines of the first
    page; called only if the metadata is not enough. text: the text of the first page.
    """
    title = _metadata_title(metadata.get("title", ""))
    given = metadata.get("author", "")
    authors = _metadata_authors(given)
    shortened = re.search(r"\bet\.? al\b", given)
    if not title or not authors or shortened:
        lines = [line for line in first_page() if line.text.strip()]
        heading = _heading(lines)
        title = title or _tidy(" ".join(line.text for line in heading))
        if not authors or shortened:
            authors = _authors_below(lines, heading) or authors
    if any(len(author) > limits.AUTHOR for author in authors) or sum(map(len, authors)) > limits.METADATA:
        authors = ()
    year = _year(text[: limits.YEAR_WITHIN], metadata.get("creationDate", ""))
    return FrontMatter(title[:_MAX_TITLE].strip(), authors, year)


def _tidy(text: str) -> str:
    """The text on one line, without ligatures and unprintable characters."""
    text = text.replace("ﬁ", "fi").replace("ﬂ", "fl").replace("ﬀ", "ff").replace("ﬃ", "ffi").replace("ﬄ", "ffl")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _metadata_title(title: str) -> str:
    title = _tidy(title)
    letters = sum(character.isalpha() for character in title)
    # One word with an underscore or a digit is a file name.
    is_name = " " not in title and re.search(r"[_\d]", title)
    return "" if letters < 4 or "\ufffd" in title or is_name or _NO_TITLE.match(title) else title


def _metadata_authors(author: str) -> tuple[str, ...]:
    author = re.sub(r",?\s*\bet\.? al\b\.?", "", _tidy(author))
    if not author or "\ufffd" in author or _NO_AUTHOR.match(author):
        return ()
    if ";" in author:
        people = [_given_name_first(part) for part in author.split(";")]
    else:
        # BibTeX's form is "Last, First and Last, First": every part has one comma.
        parts = re.split(r"\s+(?:and|&)\s+", author)
        if all(part.count(",") == 1 for part in parts) and (len(parts) > 1 or " " not in author.split(",")[0]):
            people = [_given_name_first(part) for part in parts]
        else:
            people = _BETWEEN_NAMES.split(author)
    people = [" ".join(person.split()) for person in people if person.strip()]
    if all(" " in person for person in people):
        return tuple(dict.fromkeys(people))
    # A single word is a login or a program. Among other words it is part of an organisation's name: keep that whole.
    return (author,) if " " in author else ()


def _given_name_first(person: str) -> str:
    last, comma, first = person.partition(",")
    return f"{first.strip()} {last.strip()}" if comma and "," not in first else person.strip()


def _heading(lines: Sequence[FirstPageLine]) -> list[FirstPageLine]:
    """The lines of the title: the largest type in the upper part of the page, if clearly larger than the text."""
    if not lines:
        return []
    lowest = max(line.bottom for line in lines)
    upper = [line for line in lines if line.top < 0.6 * lowest and sum(c.isalpha() for c in line.text) >= 4]
    if not upper:
        return []
    largest = max(line.size for line in upper)
    characters = [line.size for line in lines for _ in range(0, len(line.text), 10)]
    if largest < 1.15 * median(characters):
        return []
    heading: list[FirstPageLine] = []
    for line in lines:
        if not 0.95 * largest <= line.size <= largest:
            continue
        if heading and not -0.5 * line.size < line.top - heading[-1].bottom < line.size:
            break
        heading.append(line)
    return heading if sum(len(line.text) for line in heading) <= _MAX_TITLE else []


def _authors_below(lines: Sequence[FirstPageLine], heading: Sequence[FirstPageLine]) -> tuple[str, ...]:
    """The names right below the title; () if one of them does not look like a name.

    Reads lines of the same type size; affiliations are smaller.
    """
    if not heading:
        return ()
    below = [line for line in lines if line.top >= heading[-1].top + 0.5 * heading[-1].size and line not in heading]
    below = [line for line in below if line.name_text.strip()]
    if not below or below[0].top - heading[-1].bottom > 5 * heading[-1].size:
        return ()
    block: list[FirstPageLine] = []
    for line in below[:_MAX_AUTHOR_LINES]:
        is_apart = block and line.top - block[-1].bottom > 2.5 * line.size
        if is_apart or abs(line.size - below[0].size) > 0.3 or _NOT_A_NAME.search(_MARKS.sub(" ", line.name_text)):
            break
        block.append(line)
    # A list that ends with a comma, or fills all the lines examined, continues elsewhere.
    if not block or len(block) == _MAX_AUTHOR_LINES or block[-1].name_text.rstrip().endswith((",", " and", "&")):
        return ()
    # If any line has a comma, commas separate names; otherwise each line is one name.
    texts = [_MARKS.sub(" ", line.name_text).strip() for line in block]
    joined = (" " if any("," in text for text in texts) else ", ").join(texts)
    names = [_tidy(name).strip(" ,") for name in _BETWEEN_NAMES.split(_tidy(joined))]
    names = [name for name in names if name]
    return tuple(dict.fromkeys(names)) if names and all(map(_is_name, names)) else ()


def _is_name(name: str) -> bool:
    """Whether this can be a person's full name: two to six words, capitalised except particles."""
    words = name.split()
    return (
        2 <= len(words) <= 6
        and all(
            word.replace("\u2019", "'") in _PARTICLES or (word[0].isupper() and _NAME_WORD.match(word))
            for word in words
        )
        and sum(word[0].isupper() for word in words) >= 2
        and any(len(word.strip(".")) > 1 for word in words)
        and not words[0].lower().startswith(("the", "an ", "on "))
    )


def _year(text: str, created: str) -> int | None:
    """The year of the clearest date on the first page, or else the year in which the file was created."""
    for pattern in _DATES:
        if found := pattern.search(text):
            return int(found.group(1))
    made = re.match(r"(?:D:)?((?:19|20)\d\d)", created)
    return int(made.group(1)) if made else None


def arxiv_id(metadata: Mapping[str, str], margin: Iterable[str], file: str) -> str:
    """The paper's arXiv identifier, with its version if known: "2301.01234v2"; "" if there is none.

    margin: the texts that run up or down the first page. Sources, in this order: the stamp in the margin, metadata (an
    arXiv address as title, subject or keywords), the file name. Identifiers in the text may belong to cited papers.
    """
    values = [metadata.get(key, "").strip() for key in ("title", "subject", "keywords")]
    return (
        _only(*map(_STAMP.fullmatch, margin))
        or _only(*map(_ADDRESS.fullmatch, values))
        or _only(_FILE_NAME.fullmatch(PurePath(file).stem))
    )


def _only(*found: re.Match[str] | None) -> str:
    """The identifier that all matches agree on, in its longest form; "" if there is none or they disagree."""
    written = ["".join(match[1].split()) for match in found if match]
    plausible = sorted(filter(_is_plausible, written), key=len)
    return plausible[-1] if len({_VERSIONED.sub("", known) for known in plausible}) == 1 else ""


def _is_plausible(identifier: str) -> bool:
    """Whether arXiv can have issued it: year and month first, then five digits since 2015, four before."""
    old, _, digits = identifier.rpartition("/")
    month, in_month = int(digits[:4]), _VERSIONED.sub("", digits[5:])
    if not 1 <= month % 100 <= 12:
        return False
    if old:
        return month <= 703 or month >= 9107
    return month >= 704 and len(in_month) == (4 if month < 1501 else 5)


# Page labels


def page_labels(document: Any, count: int) -> list[str]:
    """The printed label of each page, "" if the file has none or it is too long to be one."""
    try:
        rules = sorted(document.get_page_labels(), key=lambda rule: rule["startpage"])
    except Exception:  # broken labels, or more than fit in memory, count as none
        return [""] * count
    labels = [""] * count
    for number, rule in enumerate(rules):
        end = rules[number + 1]["startpage"] if number + 1 < len(rules) else count
        prefix = rule.get("prefix", "")
        if len(prefix) > limits.LABEL:
            continue
        for index in range(max(0, rule["startpage"]), min(end, count)):
            value = rule.get("firstpagenum", 1) + index - rule["startpage"]
            label = _tidy(prefix + _numeral(value, rule.get("style", "")))
            labels[index] = label if len(label) <= limits.LABEL else ""
    return labels


def _numeral(value: int, style: str) -> str:
    """A page number in a PDF page label style (ISO 32000-1, 12.4.2): D, R, r, A, a, or none."""
    if style == "D":
        return str(value)
    if not style or not 0 < value < 4000:
        return ""
    if style in "Aa":
        # z is followed by aa, then bb
        text = chr(ord("A") + (value - 1) % 26) * ((value - 1) // 26 + 1)
    else:
        text = ""
        for size, sign in zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
            strict=True,
        ):
            text += sign * (value // size)
            value %= size
    return text.lower() if style in "ra" else text
