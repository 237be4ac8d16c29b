"""Names of people: splitting, writing, comparing, listing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from folio.papers.metadata import AND_OTHERS, PersonName
from folio.text import fold, plain_words, without_accents

# Words before a family name that belong to it
PARTICLES = frozenset(
    "al ap bin da dal das de del della den der des di do dos du e el ibn la le los ten ter van vel von y zu zur 't"
    .split()
)  # fmt: skip
# Capitalised, they belong to it only after one given name: "Roberto Di Cosmo", not "J. H. Van Dyke Parks"
_CAPITALISED = frozenset("Di De Van Von Le La El Al Del Della Den Ter St.".split())
# In a service's names any particle may be capitalised, and a single letter is an initial
_IN_ANY_CASE = frozenset("van von der den de del della di da du la le ter ten dos das bin ibn al el st".split())
_SUFFIX = re.compile(r"(?:jr|sr)\.?|ii|iii|iv", re.I)


def split_name(name: str) -> PersonName:
    """A name in a paper's form: the family name is the last word, with particles before it and "Jr." after it.

    "Family, Given" is understood as well. A single word is a family name.
    """
    family, comma, given = name.partition(",")
    if comma and given.strip() and not _SUFFIX.fullmatch(given.strip()):
        return PersonName(family.strip(), given.strip())
    words = name.replace(",", " ").split()
    first = len(words) - 1
    if first > 1 and _SUFFIX.fullmatch(words[-1]):
        first -= 1
    while first > 1 and is_particle(words[first - 1]) and words[first - 1].islower():
        first -= 1
    if first == 2 and words[1] in _CAPITALISED:
        first = 1
    return _split_at(words, first)


def split_listed_name(name: str) -> PersonName:
    """A name in a service's form: "Lála, Jakub" or "Jakub Lála". Services capitalise particles."""
    family, comma, given = name.partition(",")
    if comma:
        return PersonName(family.strip(), given.strip())
    words = name.split()
    first = max(len(words) - 1, 0)
    while first > 1 and words[first - 1].casefold() in _IN_ANY_CASE:
        first -= 1
    return _split_at(words, first)


def split_typed_name(name: str) -> PersonName:
    """A typed name: the family name begins at the first word in lower case, or is the last word.

    "Lovelace, Ada", "Ada Lovelace", "Ludwig van Beethoven" (as in BibTeX); "{European Commission}" has no parts.
    """
    if name.startswith("{") and name.endswith("}"):
        return PersonName(name[1:-1].strip())
    if "," in name:
        family, given = name.split(",", 1)
        return PersonName(family.strip(), given.strip())
    words = name.split()
    last = len(words) - 1
    return _split_at(words, next((at for at, word in enumerate(words[:-1]) if at and word[0].islower()), last))


def typed_name(person: PersonName) -> str:
    """A name in the form that `split_typed_name` reads."""
    if person.given:
        return f"{person.family}, {person.given}"
    return f"{{{person.family}}}" if len(person.family.split()) > 1 else person.family


def typed_names(people: Iterable[PersonName]) -> str:
    """Names as people type them: "Otter, Ann; Seal, Bo"."""
    return "; ".join(map(typed_name, people))


def is_particle(word: str) -> bool:
    return word.replace("\u2019", "'").lower() in PARTICLES


def _split_at(words: Sequence[str], first: int) -> PersonName:
    return PersonName(" ".join(words[first:]), " ".join(words[:first]))


def families(people: Iterable[PersonName]) -> set[str]:
    """The family names, for comparison."""
    return {fold(person.family) for person in people if person != AND_OTHERS}


def is_same_family(first: str, second: str) -> bool:
    """Whether two family names are the same, with or without their particles."""
    return fold(first) == fold(second) or fold(first.split()[-1]) == fold(second.split()[-1])


# Short forms that do not begin like the given name
_SHORT_FORMS = {
    "andy": "andrew", "becky": "rebecca", "bill": "william", "bob": "robert", "dick": "richard", "geoff": "jeffrey",
    "jim": "james", "kate": "catherine", "liz": "elizabeth", "mike": "michael", "peggy": "margaret", "rick": "richard",
    "steve": "stephen", "ted": "edward", "tony": "anthony", "will": "william",
}  # fmt: skip
_UMLAUT = re.compile(r"(?<=[aou])e")  # "Mueller" for Müller


def is_called(person: PersonName, wanted: Sequence[str]) -> bool:
    """Whether these words are a person's family name, or are all in the name: "ongaro", "d ongaro".

    Given names may be short or written out, and umlauts spelled out: "Jeff" for Jeffrey, "Mueller" for Müller.
    wanted: from `plain_words`.
    """
    family, given, words = map(_name_words, (person.family, person.given, " ".join(wanted)))
    if family == words:
        return True
    named = [word for word in words if word not in family]
    return len(named) < len(words) and all(any(_is_given(word, own) for own in given) for word in named)


def _name_words(name: str) -> list[str]:
    return [_UMLAUT.sub("", word) for word in plain_words(without_accents(name))]


def _is_given(word: str, own: str) -> bool:
    """Whether a word stands for a given name: it, its initial, or a short form of either."""
    pairs = ((word, own), (_SHORT_FORMS.get(word, word), _SHORT_FORMS.get(own, own)))
    return any(
        long == short or (long.startswith(short) and len(short) != 2)  # Ed is no Eduardo
        for short, long in (sorted(pair, key=len) for pair in pairs)
    )


def short_list(names: Sequence[str], *, and_others: bool = False) -> str:
    """The family names of a paper's authors, shortened: "Otter", "Otter & Seal", "Otter et al."."""
    return f"{names[0]} et al." if len(names) > 2 or and_others else " & ".join(names)
