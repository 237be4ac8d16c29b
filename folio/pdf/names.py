"""Names of people on front pages: distinguished from affiliations, split into given and family names."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import lru_cache

from folio.papers.people import PARTICLES, is_particle
from folio.text import one_line

# Replaces superscripts in a line's text: the marks of affiliations and footnotes.
MARK = "\x01"

# Titles, degrees and memberships around a name
_HONOUR = re.compile(r"^(?:by|prof(?:essor)?\.?|dr\.?|mr\.?|mrs\.?|ms\.?)\s+", re.I)
_MEMBERSHIP = re.compile(
    r"^(?:(?:student |senior |life |associate )*(?:member|fellow)|ieee|acm|osa|siam|ph\.?\s?d\.?|m\.?d\.?|m\.?sc\.?"
    r"|jr\.?|sr\.?|esq\.?|et al\.?)$",
    re.I,
)
# "M.A.", "F.R.S." after a name
_DEGREE = re.compile(r"(?:[A-Z][a-z]{0,2}\.\s?){2,5}")
# Words of addresses, organisations, headings and subjects: a text with one of them is not a list of names.
NOT_A_NAME = re.compile(
    r"universi|universit|institut|departm|\bdept\b|laborator|\blabs?\b|school|college|cent(?:re|er)s?\b|facult"
    r"|academy|hospital"
    r"|research|science|\bgroup\b|division|ministry|society|association|company|foundation|\binc\b|\bltd\b|gmbh"
    r"|\bcorp\b|corporation"
    r"|polytechn|technolog|technische|hochschule|h¨?ogskola|consultant|consulting|solutions"
    r"|abstract|introduction|summary|journal|proceedings|conference|symposium|workshop|volume|\bvol\b|transactions"
    r"|published|received|accepted|revised|edited|\breview|editor|copyright|licen[cs]e|version|draft|memo\b"
    r"|thesis|dissertation"
    r"|committee|advis[eo]r|supervisor|chair\b|submitted|supported|sponsored|permission|available|appears?\b|extended"
    r"|street|avenue|\broad\b|\bdrive\b|p\.?o\.? box|https?|www|\.com\b|\.edu\b|\.org\b|e-?mail"
    r"|report|technical|articles?\b|papers?\b|preprint|keywords|contents|chapter|manual|guide|overview|lecture"
    r"|notes?\b|tutorial|survey"
    r"|\b(?:systems?|models?|languages?|programming|programs?|networks?|data|database|analysis|theory|methods?"
    r"|learning|algorithms?"
    r"|distributed|comput(?:er|ers|ing)|software|engineering|design|information|applications?|functional"
    r"|structures?|protocols?"
    r"|problems?|logic)\b"
    r"|(?-i:\b(?:[Tt]he|for|with|from|using|[Tt]owards?|on|at|in|is|are|this|our|we)\b)"
    r"|january|february|\bmarch\b \d|\bapril\b \d|june \d|july \d|august \d|september|october|november|december"
    r"|[@=<>/\\{}\[\]:?!]|\d{2}",
    re.I,
)
# Marks after authors: footnote signs, affiliation numbers, and the ORCID icon, whose text is "ID".
_MARKS = re.compile(
    r"[\d*\u2217†‡§¶‖#⋆★✉⇤≀◇♠♣♥♦⟂⊥\x01]+|\bID\b|\biD\b|(?<=\w)[⁰¹²³⁴-⁹]+|\(cid:\d+\)|\((?=[\W\d])[^()]{0,8}\)"
)
# How to reach a person, in brackets after the name: "Ada Lovelace (ada@engine.org)"
_CONTACT = re.compile(r"\([^()]{0,80}@[^()]{0,80}\)|<[^<>]{0,80}@[^<>]{0,80}>")
_ADDRESS = re.compile(r"@|https?:|www\.|\.(?:edu|com|org|net)\b", re.I)
_SMALL_WORD = re.compile(r"(?<![^\s(\"“'‘-])[^\W\d_A-Z]{3,}(?![\w@])")
_BETWEEN_NAMES = re.compile(
    r"\s*(?:[,;·•|∙⋅]\s*(?:and|&)\s+|[,;·•|∙⋅]|(?:^|\s)(?:and|&|und|et)(?:\s|$)|\s{3,})\s*", re.I
)
_NAME_WORD = re.compile(r"^(?:[^\W\d_]\.?-?|[^\W\d_][^\W\d_.'\u2019\u02bc-]*(?:[.'\u2019\u02bc-]+[^\W\d_]+)*\.?)$")
_CJK_NAME = re.compile(r"[\u3400-\u9fff]{2,4}|[\uac00-\ud7af]{2,4}")


def common_words(text: str) -> frozenset[str]:
    """The words that a text writes small in its sentences. A person's name is not among them.

    Lines with addresses do not count: an e-mail's account is a name in small letters.
    """
    lines = (line for line in text.split("\n") if is_prose(line) and not _ADDRESS.search(line))
    return frozenset(word for line in lines for word in _SMALL_WORD.findall(line))


def is_prose(text: str) -> bool:
    """Whether a line is part of a sentence: six words or more, most of them in small letters."""
    words = text.split()
    return len(words) >= 6 and sum(word[0].islower() for word in words) > 0.5 * len(words)


def names_in(line: str, common: Container[str] = ()) -> list[str]:
    """The names in a line of authors, with MARK for superscripts; [] if any part of it does not look like a name.

    Of a line that continues with an affiliation ("Ada Lovelace, Analytical Society"), the names before it. common: the
    words that the paper writes small (common_words). A line made of them is a title: "Sender and Recipient".
    """
    names = _names_by_form(without_contact(line).partition("[")[0])
    words = [word for name in names for word in re.split(r"[\s-]+", name) if len(word) > 2 and not is_particle(word)]
    known = sum(word.casefold() in common for word in words)
    return list(names) if 2 * known <= len(words) else []


def without_contact(text: str) -> str:
    """A text without the addresses in brackets after its names."""
    return _CONTACT.sub(" ", text) if "@" in text else text


@lru_cache(maxsize=1024)  # a line is asked for several times while the title and the authors are looked for
def _names_by_form(line: str) -> Sequence[str]:
    """The names in a line if each of its parts has the form of one."""
    if not line.strip() or (line.lstrip()[0] == MARK and not line.strip(f" {MARK}")):
        return []
    pieces = [piece for part in _BETWEEN_NAMES.split(line) for piece in _at_marks(part)]
    names: list[str] = []
    odd, is_member = 0, False
    for piece in pieces:
        name = clean_name(piece)
        is_society = is_member and _is_acronym(name)  # "Member, ASCE"
        is_member = bool(_MEMBERSHIP.match(name)) or bool(names and _DEGREE.fullmatch(name))
        if not name or is_member or is_society:
            continue
        if NOT_A_NAME.search(name):
            return [] if odd else names
        if not is_name(name):
            odd += 1
            if name[0].islower() or len(name.split()) > 6:
                return []
        names.append(name)
    # A long list contains some unusual names.
    return names if 10 * odd <= len(names) else []


def join_lines(lines: list[str]) -> str:
    """The lines of a list of authors joined into one. A name may continue on the next line."""
    text = lines[0]
    for line in lines[1:]:
        last, first = _BETWEEN_NAMES.split(text)[-1], _BETWEEN_NAMES.split(line)[0]
        marked = MARK in last or MARK not in text
        if not last.strip() or not first.strip() or (last.split()[-1].islower() and is_particle(last.split()[-1])):
            text += f" {line}"  # "Ana Franco da" continues
        elif marked and is_name(clean_name(last)) and is_name(clean_name(first)):
            text += f", {line}"
        elif len(_BETWEEN_NAMES.split(text)) > 1:
            text += f" {line}"
        else:  # a single name, which the next line does not continue
            text += f", {line}"
    return text


def _at_marks(part: str) -> list[str]:
    """The part split at marks between two names: "Ada Lovelace* Luigi Menabrea"."""
    pieces = [piece for piece in _MARKS.split(part) if piece.strip(" .,")]
    return pieces if len(pieces) > 1 and all(len(piece.split()) > 1 for piece in pieces) else [part]


def clean_name(text: str) -> str:
    """A name without marks, titles and "by"; capitals only at the beginning of words."""
    name = one_line(_MARKS.sub(" ", text)).strip(" ,;()")
    name = re.sub(r"(?<=[^\W\d_]{3})\.$", "", name) if not _MEMBERSHIP.match(name) else name
    name = re.sub(r"(?<=\w\w)\s+[a-z]$", "", name)  # the letter of an affiliation, or a misread dagger
    while (shorter := _HONOUR.sub("", name)) != name:
        name = shorter
    letters = [character for character in name if character.isalpha()]
    if len(letters) > 4 and all(character.isupper() for character in letters):
        name = re.sub(r"[^\W\d_]+", lambda match: _capitalised(match[0]), name)
    return name


def _capitalised(word: str) -> str:
    if word.lower() in PARTICLES and len(word) > 1:
        return word.lower()
    if word.startswith("MC") and len(word) > 4:
        return "Mc" + word[2:].capitalize()
    return word.capitalize()


def is_name(name: str) -> bool:
    """Whether this can be a person's full name: two to six words, capitalised except particles."""
    if _CJK_NAME.fullmatch(name):
        return True
    words = name.split()
    return (
        2 <= len(words) <= 6
        and all(is_particle(word) or (word[0].isupper() and _NAME_WORD.match(word)) for word in words)
        and sum(word[0].isupper() for word in words) >= 2
        and any(len(word.strip(".")) > 1 for word in words)
        and not ((_is_acronym(words[0]) and len(words[0]) > 2) or (len(words[-1]) > 2 and _is_acronym(words[-1])))
        and not words[0].lower().startswith(("the", "an "))
    )


def _is_acronym(word: str) -> bool:
    return word.isalpha() and word.isupper()
