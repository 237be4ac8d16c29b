"""Recognises questions about the library: facts of a paper, counts and lists of papers, papers on a topic.

Three kinds of questions, one after another below, each with its patterns above the functions that use them:

    facts of a paper     "Who wrote the Raft paper, and when?"                  facts_question
    counts and lists     "How many papers are by Lamport?"                      library_question
    papers on a topic    "Which papers deal with hazard pointers?"              wanted_papers

Only the third needs a search. A question for facts is a first guess: answer/library_questions.py compares its other
words with the papers, so that "who wrote the code of Raft" is none. Pure; for English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from folio.text import one_line

Fact = Literal["who", "when", "where", "pages", "added", "opened", "notes", "tags", "doi", "authors", "language"]
# Fields of a paper by which papers are chosen, ordered and counted. "paper": a paper that is named; "about": a topic
FieldName = Literal[
    "year", "author", "venue", "tag", "collection", "pages", "authors", "added", "opened", "notes", "doi", "abstract",
    "title", "cites", "cited_by", "about", "paper", "unknown",
]  # fmt: skip
Bounds = tuple[int, int]  # the first and the last number
OPEN = 10**6  # no upper bound


@dataclass(frozen=True, slots=True)
class FactsQuestion:
    """A question for facts about a paper."""

    question: str
    facts: tuple[Fact, ...]
    of_a_paper: bool  # it mentions a paper or writing, so its words may describe a paper
    which: LibraryQuestion | None = None  # the papers if they are the first of an order: "the oldest paper"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a paper must be: a name or a time in words, a number within bounds, or else a field that is known."""

    field: FieldName
    words: str = ""
    bounds: Bounds | None = None
    is_denied: bool = False
    is_sure: bool = True  # False: the words mean something else unless the library has them ("papers at NDSS")


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """A question about the papers of the library."""

    conditions: tuple[Condition, ...] = ()
    asks: Literal["list", "count", "lines"] = "list"  # lines: a sentence of each
    order: FieldName | None = None
    is_falling: bool = False
    most: int | None = None  # so many of that order, and those that tie with the last
    by: FieldName | None = None  # counts the papers for each value of this field

    @property
    def is_searched(self) -> bool:
        """Whether it lists the papers on a topic, which a search finds."""
        is_plain = self == LibraryQuestion(self.conditions)
        return is_plain and any(condition.field == "about" for condition in self.conditions)


# Facts of a paper

# What may stand before the word that asks: "please tell me the names of the"
_POLITE = (
    r"(?:(?:please|tell me|give me|show me|list|name|do you know|can you tell me|what (?:is|are|was|were)|what's"
    r"|who (?:is|are|was|were)|the|all|full|names? of)\s+)*"
)
_ASKING_WORDS: dict[Fact, str] = {
    "who": r"who(?:['’]?s|se|m)?|(?:by|from) whom|(?:what|which) (?:people|person|authors?)|authors?|writers?",
    "when": r"when(?! (?:did (?:i|we) (?:last )?(?:add|import|ingest|read|open)\b|.* (?:added|imported|ingested)\W*$))"
    r"|(?:(?:in|from|of) )?(?:what|which) (?:year|date)|how (?:old|recent|new)(?= (?:is|are)\b)(?!.* when\b)"
    r"|(?:publication )?(?:year|date)(?= (?:of|for)\b)|(?:publication (?:year|date))",
    "where": r"where|(?:(?:in|at|by) )?(?:what|which) (?:journal|conference|venue|workshop|proceedings|magazine)|venue",
    "pages": r"(?:number of|how many) pages (?:ha[sd]|are (?:there )?in|is|(?=do(?:es)? .* (?:have|long|contain)\W*$))"
    r"|how long (?:is|are)(?= .*\b(?:paper|article|pdf|thesis|report)\W*$)|page count",
    "added": r"when (?:did (?:i|we) (?:add|import|ingest)|(?=w(?:as|ere) .* (?:added|imported|ingested)\W*$))",
    "opened": r"(?:when )?(?:did|have) (?:i|we) (?:last |already |ever )*(?:read|opened?|looked at)",
    "notes": r"(?:how many|do (?:i|we) have(?: any)?|what|which|(?:are )?there(?: any)?|any|my)?\s*notes"
    r" (?:(?:have|did|do) (?:i|we) (?:have|made?|take|taken|write|written) )?(?:on|about|for|in)",
    "tags": r"(?:what|which|how many)? ?tags (?:ha[sd]|of|on|for|does)|how is(?= .* tagged\W*$)",
    "doi": r"doi\b",
    "language": r"(?:what|which) language (?:is|was|are)(?= .*\b(?:paper|article|pdf|document|thesis)\b)",
    "authors": r"(?:number of|how many) (?:people|(?:co-?)?authors) (?:ha[sd]|of|wrote|on|(?=do(?:es)? .* have\W*$))",
}
# Facts that no page of the paper states
DETAILS: frozenset[Fact] = frozenset(("pages", "added", "opened", "notes", "tags", "doi", "authors", "language"))
# "Who wrote the Raft paper", its second fact "and when", "The Raft paper is by whom"
_BEGINS = {fact: re.compile(rf"\W*{_POLITE}(?:{words})\b", re.I) for fact, words in _ASKING_WORDS.items()}
_JOINED = {fact: re.compile(rf"\b(?:and|or)\s+{_POLITE}(?:{words})\b", re.I) for fact, words in _ASKING_WORDS.items()}
_ENDS_WITH_WHO = re.compile(r"\b(?:by whom?|authors?|writers?)\W*$", re.I)
# Words of a question about a paper
OF_A_PAPER = re.compile(
    r"\b(?:papers?|articles?|study|report|document|publication|manuscript|preprint|thesis|book|notes|essay|memo|replication"
    r"|reproduction|(?:co-?)?authors?|authored|writers?|write|wrote|written|publish(?:ed)?)\b",
    re.I,
)
# Words of the same question about the thing that a paper presents: who came up with it, where it appeared
_OF_A_THING: dict[Fact, re.Pattern[str]] = {
    "who": re.compile(
        r"\b(?:by|behind|ma[dk]e|did|create[ds]?|invent(?:s|ed)?|propose[ds]?|introduce[ds]?|develop(?:s|ed)?"
        r"|design(?:s|ed)?|c[ao]me up with)\b",
        re.I,
    ),
    "when": re.compile(""),  # any words
    "where": re.compile(
        r"\b(?:publish(?:ed)?|appear(?:ed)?|c[ao]me out|presented|released"
        r"|journal|conference|venue|workshop|proceedings|magazine)\b",
        re.I,
    ),
}
_AND_SIGN = re.compile(r"\s*[/&]\s*")  # "when/where", "who & when"
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b\s*(?=\s)")  # the ending of "Lamport's"


def facts_question(question: str) -> FactsQuestion | None:
    """The facts that a question asks for; None if it asks for none.

    It may ask for a fact if it begins or ends with words that do.

    >>> facts_question("who wrote the Raft paper, and when?").facts
    ('who', 'when')
    """
    question = _POSSESSIVE.sub(" ", _AND_SIGN.sub(" and ", question))
    facts = tuple(
        fact
        for fact in _ASKING_WORDS
        if _BEGINS[fact].match(question)
        or _JOINED[fact].search(question)
        or (fact == "who" and _ENDS_WITH_WHO.search(question))
    )
    of_a_paper = OF_A_PAPER.search(question) is not None or any(fact in DETAILS for fact in facts)
    # Other things of a paper have a place, too, such as its code.
    printed = [fact for fact in facts if fact not in DETAILS]
    if not facts or not all((of_a_paper and fact != "where") or _OF_A_THING[fact].search(question) for fact in printed):
        return None
    rest = max((match.end() for fact in facts if (match := _BEGINS[fact].match(question))), default=0)
    which = _scanned(re.sub(r"^\W*wrote\b|\b(?:published|written)\W*$", "", question[rest:]))
    return FactsQuestion(question, facts, of_a_paper, which if which and which.order and not which.by else None)


# Counts and lists of papers

NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
_NUMBER = rf"\d{{1,4}}|{'|'.join(NUMBERS)}"
_NOUN = r"(?:papers?|articles?|pdfs?|documents?|files?|publications?|studies)\b"
_YEAR = r"(?:1[5-9]|20)\d\d"
# Words of a field, the longer ones first
_FIELD_WORDS: dict[str, FieldName] = {
    "date added": "added", "added": "added", "pages?": "pages", "length": "pages", "years?": "year", "dates?": "year",
    "co-?authors?": "authors", "authors?": "authors", "writers?": "authors", "journals?": "venue", "venues?": "venue",
    "conferences?": "venue", "tags?": "tag", "collections?": "collection", "notes?": "notes", "dois?": "doi",
    "abstracts?": "abstract", "titles?": "title",
}  # fmt: skip
_FIELD = rf"(?:{'|'.join(_FIELD_WORDS)})\b"
# Words for the first or the last of an order, and whether that falls
_ORDERS: dict[str, tuple[FieldName, bool]] = {
    "(?:most )?recently added|(?:last|latest) added|(?:latest|newest|last) additions?": ("added", True),
    "(?:most )?recently (?:read|opened)|last (?:read|opened)": ("opened", True),
    "first added": ("added", False), "oldest": ("year", False), "earliest": ("year", False), "newest": ("year", True),
    "latest": ("year", True), "(?:the )?most recent": ("year", True), "longest": ("pages", True),
    "shortest": ("pages", False), "first(?= paper| article| publication)": ("year", False),
    "chronological(?:ly)?": ("year", False), "alphabetical(?:ly)?": ("title", False),
}  # fmt: skip
_PAST = rf"today|yesterday|(?:(?:this|last|past) |the )?(?:last |past )?(?:(?:{_NUMBER}) )?(?:day|week|month|year)s?"
_WHEN = rf"(?:(?:in|since|during|over|within|on|from) )?(?:the )?(?:{_PAST}|(?:since |in )?{_YEAR})\b"
# A name that is typed ends where another phrase begins.
_ENDS = (
    r"(?=(?:,? (?:and|but|or))? (?:that|which|are|is|from|in|at|since|before|after|between|until|published|written|with"
    r"|without|about|on|not|by|tagged|cited|citing|added|sorted|ordered|other than|except|newer|older|longer|shorter"
    r"|did|does|wrote|have|has|as)\b|\W*$)"
)
_NAME = rf"(?P<value>\S.*?){_ENDS}"
_TITLE = (
    rf"(?P<value>\S.*?)(?=(?:,? (?:and|but))? (?:(?:published )?(?:from|in|since|before|after|between) {_YEAR}"
    r"|(?:not )?by|not (?:from|in)|tagged|added|sorted|ordered|other than|except|without)\b|\W*$)"
)
# What papers do with a topic
_VERBS = frozenset(
    """
    about address addresses addressed apply applies cite cites cited compare compares concern concerning concerns
    consider considers contain contains cover covering covers covered deal dealing deals describe describes described
    describing discuss discusses discussed discussing employ employs evaluate evaluates evaluated explain explains
    include includes introduce introduces involve involves mention mentions mentioned mentioning present presenting
    presents propose proposes provide provides refer refers regarding relate related relates rely relies report reports
    say says show shows study studying talk talking talks tell tells treat treats use uses used using
    """.split()
)
_SOMEONE = (
    rf"(?!(?:(?:of|my|our|your|the|these|those|all|any|an?) )*{_NOUN}"
    r"|(?:i|we|you|is|are|was|were|do|did|has|have|not|been)\b)"
)
_MORE, _LESS = r"(?:more|longer|greater) than|over|above", r"(?:less|fewer|shorter) than|under|below"
# Phrase -> what it means; the first that matches at a place is taken. A question is one about the library only if
# phrases and fillers are all of it.
_PHRASES: tuple[tuple[str, str], ...] = (
    ("count", r"how many(?: different| distinct)?\b|(?:total )?number of\b|count(?: of)?\b"),
    ("lines", r"(?:summari[sz]e|describe|sum up|(?:(?:a|short|brief) )*(?:summary|overview|tl;?dr)(?: of)?)\b"
     r"|about(?=\W*$)|(?:(?:in )?(?:one|1)|in a)(?: single)? (?:sentence|line)(?: summary)?\b"),
    ("last", rf"(?P<last>last|latest|newest|first)(?: (?P<n>{_NUMBER}))? {_NOUN}(?: that)?(?: i| we)?"
     r"(?: have| was| were)? (?P<verb>added|opened|read)\b"
     rf"|(?P<verb2>add(?:ed)?|opened|read) (?P<last2>last|first)\b(?! (?:{_NUMBER}|day|week|month|year))"),
    ("group", rf"(?:per|for each|in each|from each|by each|of each|by)(?: number of)? (?P<field>{_FIELD})"),
    ("every", r"every ?thing\b|(?:per|for|of|about)? ?(?:every|each|per)\b|all of (?:it|them)\b"),
    ("order", rf"(?:sort(?:ed)?|(?:in )?order(?:ed)?|arranged)(?: by| of)?(?: number of)? (?P<field>{_FIELD})"),
    ("extreme", rf"(?:with |has |have )?(?:the )?(?P<most>most|fewest|least) (?P<field>{_FIELD})"),
    ("extreme_count", rf"(?:the )?(?P<most>most|fewest)(?: {_NOUN}| (?:common|frequent|prolific)\b)"),
    ("super", rf"(?:(?:top )?(?P<n>{_NUMBER}) )?(?:{'|'.join(_ORDERS)})(?: first)?\b"),
    ("size", r"(?:with |have |has |of )?(?:only |exactly )?"
     rf"(?:(?P<more>{_MORE}|at least)|(?P<less>{_LESS}|at most|up to))?"
     rf" ?(?P<n>{_NUMBER}|single) (?P<field>(?:pages?|(?:co-?)?authors?|notes?|tags?)\b)"
     r"(?: long| or (?P<ormore>more))?"),
    ("unknown", r"(?:written )?in (?:english|german|french|spanish|italian|portuguese|chinese|japanese|russian|dutch)\b"
     r"|(?:most|highly|best|often) cited\b|(?:favou?rite|starred|highest rated)\b"),
    ("tag", rf"(?:tagged|labell?ed|with (?:the |a )?tag\b)(?: as| with)? {_NAME}"),
    ("has", r"(?:with|having|have|has|without|lacking|lack|missing|miss)(?: (?:any|a|an|no|known))* "
     r"(?P<field>(?:notes?|tags?|dois?|abstracts?|years?|venues?|journals?|authors?|titles?)\b)(?= (?!of\b)|\W*$)"
     r"|(?:took|taken?|made|wrote|written) (?P<field2>notes?\b)(?: on| about)?|(?P<field3>annotated|untagged)\b"),
    ("opened", r"(?P<un>unread|unopened)\b"
     rf"|(?:already |ever )?(?:read|opened|looked at)\b(?: yet)?(?: (?P<value>{_WHEN}))?"),
    ("added", rf"(?:add(?:ed)?|imported|ingested)\b(?: (?P<value>{_WHEN}))?"),
    ("decade", r"(?:from |in |of )?(?:the )?(?P<decade>(?:1[5-9]|20)?\d0)['’]?s\b"),
    ("year", rf"(?:(?P<since>since)|(?P<after>after|newer than|later than)|(?P<before>before|older than|earlier than)"
     rf"|between|(?P<until>until|up to)|in|from|of)?(?: the year| years?)? ?(?P<one>{_YEAR})\b"
     rf"(?: ?(?:and|to|-|–) ?(?P<two>{_YEAR})\b|(?P<on> on(?:wards?)?\b| or later\b)"
     r"|(?P<upto> or (?:earlier|before)\b))?"),
    ("past_year", rf"(?:(?:from|of|in) )?(?P<value>(?:this|last) year|the (?:last|past) (?:{_NUMBER}) years)\b"),
    ("collection", rf"in (?:the |my )?collection {_NAME}|in (?:the |my )?(?P<value2>\S+) collection\b"),
    ("cited_by", rf"cited (?:by|in) {_TITLE}|(?:does|do) (?P<value2>{_SOMEONE}\S.*?) cite\b"),
    ("cites", rf"(?:(?:that|which) )?(?:cit(?:e|es|ing)|refer(?:s|ring)? to) {_TITLE}"),
    ("not", r"(?:other than|except(?: for)?|besides|apart from|excluding)"
     rf" (?:those\b|(?:the )?ones\b|(?=(?:the )?(?:from )?{_YEAR}))"),
    ("paper", rf"(?:other than|except(?: for)?|besides|apart from|excluding) {_NAME}"),
    ("by", rf"(?:written |authored |co-?authored |made )?by {_NAME}(?: as (?:an? |the )?(?:co-?)?authors?)?"),
    ("author", rf"(?:did|has|have|that|which) (?P<value>{_SOMEONE}\S.{{1,40}}?)"
     r" (?:write|publish|written|wrote|published|authored)\b"
     r"|(?:have|has|with|list|name) (?P<value2>\S.*?) (?:as (?:an? |the )?(?:co-?)?|among (?:the |their )?)authors?"
     rf"|(?P<value3>\S+(?: \S+)?)['’]s? (?={_NOUN})|published by (?P<value4>\S.*?){_ENDS}"
     rf"|without (?P<value5>\S.*?){_ENDS}"
     rf"|does (?P<value6>(?!the\b)(?:(?!{_NOUN})[\w.-]+ ?){{1,4}}?) have(?= .*\b{_NOUN})"
     r"|where (?P<value7>\S.*?) is (?:an? |the )?(?:first |co-?)?author\b"),
    ("venue", r"(?:published |appeared |presented )?(?:in|at|from|of)"
     rf" (?!before|after|since|until|between|the (?:last|past)\b){_SOMEONE}{_NAME}"),
    ("about", rf"(?:about|on|dealing with|concerning) {_TITLE}"),
    ("uses", rf"(?:(?:that|which) (?:also )?(?:{'|'.join(sorted(_VERBS))})|use[sd]?|using"
     rf"|(?:mention|discuss|describ|evaluat|employ)(?:e?s?|e?d|ing)) {_TITLE}"),
    ("not", r"(?:not|never|neither)\b|(?:are|is|was|were|have|has|did|do|does)n['’]?t\b"),
    ("filler", r"titles? of\b|came out\b|together\b"), ("noun", _NOUN), ("noun", r"(?:anything|something)\b"),
    ("values", rf"(?P<field>{_FIELD})"), ("who", r"who\b"),
    ("library", r"(?:this )?(?:library|collection|folder|index)\b"),
    ("filler", r"(?:wh?ich|what(?:'?s)?|list|show|me|name|give|find|tell|the|an?|all|any|my|our|of|these|those|is"
     r"|are|was|were|be|been|that|there|do|does|did|i|we|you|have|has|had|it|please|and|but|also|ones?|with|published|written|wrote"
     r"|appeared|come|from|in|here|yet|got|own|different)\b"),
    ("author", r"(?P<value8>(?-i:[A-Z])\S+) (?=(?:papers|articles|publications)\b)"),
)  # fmt: skip
_SCANNED = tuple((name, re.compile(pattern, re.I)) for name, pattern in _PHRASES)
_HERE = re.compile(
    r"\b(?:please|altogether|in (?:all|total)|(?:in|of|from) (?:here|(?:the|my|our|your|this) (?:libr?ary|collection"
    r"|folder|index)))\b",
    re.I,
)
_WHATS_HERE = re.compile(r"\W*what(?:'s|s| is) in (?:here|(?:my|our|this) \w+|the library)\W*", re.I)
_PLURAL = re.compile(rf"\b(?={_NOUN})\w+s\b|\bstudies\b", re.I)
# Phrases whose words name a value of a field
_NAMED: dict[str, FieldName] = {
    "added": "added", "tag": "tag", "collection": "collection", "cited_by": "cited_by", "cites": "cites",
    "about": "about", "uses": "about",
}  # fmt: skip
_GROUPS: tuple[FieldName, ...] = ("year", "author", "venue", "tag", "collection")


def library_question(question: str) -> LibraryQuestion | FactsQuestion | None:
    """A question about the library; None for a question about the content of the papers."""
    plain = one_line(question).replace("’", "'")
    return _scanned(plain) or facts_question(plain)


def _scanned(question: str) -> LibraryQuestion | None:
    """The question that its phrases make; None if it has other words, too, or is none about the library."""
    text = _HERE.sub(" ", question)
    found: list[tuple[str, re.Match[str]]] = []
    at = 0
    while match := re.compile(r"[\s,;:.?!()\"'-]*").match(text, at):
        at = match.end()
        if at == len(text):
            break
        phrases = ((name, pattern.match(text, at)) for name, pattern in _SCANNED)
        name, phrase = next(((name, phrase) for name, phrase in phrases if phrase and phrase.end() > at), ("", None))
        if phrase is None:
            return None
        found.append((name, phrase))
        at = phrase.end()
    return _question_of(question, found, names_library=text != question)


def _question_of(
    question: str, found: Sequence[tuple[str, re.Match[str]]], *, names_library: bool
) -> LibraryQuestion | None:
    """The question made of these phrases; None if they make no question about the library."""
    names = [name for name, _ in found]
    if _WHATS_HERE.fullmatch(question):
        return LibraryQuestion(asks="lines")
    conditions = _conditions(found)
    if conditions is None:
        return None
    order, is_falling, most = _order(found, is_plural=_PLURAL.search(question) is not None)
    by = _group(found)
    is_count, has_noun = "count" in names, not {"noun", "last", "every"}.isdisjoint(names)
    i_did = re.search(r"\b(?:i|we)\b", question, re.I) and any(c.field in ("added", "opened") for c in conditions)
    whole = LibraryQuestion(conditions, "count" if is_count else "list", order, is_falling, most)
    if "lines" in names:
        is_whole = "every" in names or "library" in names or names_library or _PLURAL.search(question)
        return replace(whole, asks="lines") if is_whole else None
    if by:
        all_values = is_count or names_library or re.search(r"\b(?:there|all|do i have|have i)\b", question, re.I)
        is_clear = "extreme_count" in names or "group" in names or (all_values and not has_noun and "who" not in names)
        return replace(whole, by=by) if is_clear else None
    if "who" in names or "values" in names or "extreme_count" in names:
        return None
    did_write = any(name == "author" and phrase.groupdict().get("value") for name, phrase in found)
    if not (has_noun or i_did or did_write):
        return None
    if "uses" in names and not (whole.is_searched and any(condition.field != "about" for condition in conditions)):
        return None
    is_topic = conditions and all(condition.field == "about" for condition in conditions)
    if (conditions and (not is_topic or is_count or order)) or order:
        return whole
    asks_all = is_count or (_PLURAL.search(question) and not re.match(r"\W*what (?:are|is|were)\b", question, re.I))
    return whole if not conditions and asks_all and len(names) > 1 else None


def _field(match: re.Match[str]) -> FieldName:
    """The field that a phrase names."""
    words = next(value for name, value in match.groupdict().items() if name.startswith("field") and value)
    if words.casefold() in ("annotated", "untagged"):
        return "notes" if words.casefold() == "annotated" else "tag"
    return next(known for pattern, known in _FIELD_WORDS.items() if re.fullmatch(pattern, words, re.I))


def _number(words: str | None) -> int | None:
    return None if not words else NUMBERS.get(words.casefold()) or (int(words) if words.isdecimal() else 1)


def _order(
    found: Sequence[tuple[str, re.Match[str]]], *, is_plural: bool
) -> tuple[FieldName | None, bool, int | None]:
    """The order that is asked for, whether it falls, and how many papers of it; None for no order, or all."""
    for name, match in found:
        if name == "super":
            starts = ((each, re.compile(each, re.I).search(match.string, match.start())) for each in _ORDERS)
            words = next(each for each, start in starts if start and start.start() < match.end())
            is_list = is_plural or match.group().casefold().endswith(" first")
            return *_ORDERS[words], _number(match["n"]) or (None if is_list else 1)
        if name == "last":
            verb, place = match["verb"] or match["verb2"], match["last"] or match["last2"]
            return ("added" if verb[0] in "aA" else "opened"), place.casefold() != "first", _number(match["n"]) or 1
        if name == "extreme" and _field(match) not in ("year", "venue", "doi", "abstract", "title", "collection"):
            return _field(match), match["most"].casefold() == "most", 1
        is_by = name == "group" and match.group().startswith("by") and "count" not in dict(found)
        if name == "order" or is_by:
            return _field(match), _field(match) in ("year", "added", "opened", "pages", "notes"), None
    return None, False, None


def _group(found: Sequence[tuple[str, re.Match[str]]]) -> FieldName | None:
    """The field whose values are asked for or counted."""
    names = dict(found)
    if "who" in names and "extreme_count" in names:
        return "author"
    for name, match in found:
        if name == "values" or (name == "group" and ("count" in names or not match.group().startswith("by"))):
            named: FieldName = "author" if _field(match) == "authors" else _field(match)
            return named if named in _GROUPS else None
    return None


def _conditions(found: Sequence[tuple[str, re.Match[str]]]) -> tuple[Condition, ...] | None:
    """The conditions among the phrases.

    None if a "not" denies none of them, or is in a name, or if a name has no letter or digit.
    """
    conditions: list[Condition] = []
    is_denied = False
    for name, match in found:
        if name == "not":
            is_denied = not is_denied
        elif (words := _value(match)) is not None and (_DENIES.search(words) or not any(map(str.isalnum, words))):
            return None
        elif condition := _condition(name, match):
            conditions.append(replace(condition, is_denied=condition.is_denied != is_denied))
            is_denied = False
    return None if is_denied else tuple(conditions)


def _value(match: re.Match[str]) -> str | None:
    """The name, topic or time in a phrase, without the words and signs around it; None for a phrase without one."""
    typed = next((value for key, value in match.groupdict().items() if key.startswith("value") and value), None)
    if typed is None:
        return None
    return re.sub(r"^(?:both|either)\s|(?:,?\s(?:and|or|but|are|is|from|that|which))+$", "", typed.strip(" ?.!,\"'"))


def _condition(name: str, match: re.Match[str]) -> Condition | None:
    """The condition that a phrase states; None if it states none."""
    groups = match.groupdict()
    words = _value(match) or ""
    if name == "has":
        is_missing = re.match(r"(?:without|lack|miss|untagged)|\w+ no\b", match.group(), re.I) is not None
        return Condition(_field(match), is_denied=is_missing)
    if name == "year":
        return Condition("year", bounds=_year_range(match))
    if name == "decade":
        decade = int(match["decade"])
        if decade < 100:
            decade += 2000 if decade < 30 else 1900  # "the 20s" are those of this century
        return Condition("year", bounds=(decade, decade + 9))
    if name == "size":
        number = _number(match["n"]) or 1
        is_strict = not re.match(r"at |up to", match["more"] or match["less"] or "", re.I)
        if match["more"] or match["ormore"]:
            return Condition(_field(match), bounds=(number + (is_strict and not match["ormore"]), OPEN))
        return Condition(_field(match), bounds=(0, number - is_strict) if match["less"] else (number, number))
    if name == "opened":
        return Condition("opened", words, is_denied=bool(match["un"]))
    if name == "past_year":
        return Condition("year", words)
    if name in ("author", "by"):
        is_sure = name == "by" or bool(groups.get("value2"))
        return Condition("author", words, is_denied=bool(groups.get("value5")), is_sure=is_sure)
    if name == "venue":
        return Condition("venue", words, is_sure=False)
    if name == "paper":
        return Condition("paper", words, is_denied=True, is_sure=False)
    if name == "unknown":
        return Condition("unknown", match.group())
    if name in _NAMED:
        return Condition(_NAMED[name], words, is_sure=name not in ("cites", "cited_by"))
    return None


def _year_range(match: re.Match[str]) -> Bounds:
    one, two = int(match["one"]), int(match["two"] or match["one"])
    if match["after"]:
        return one + 1, OPEN
    if match["before"]:
        return 0, one - 1
    if match["until"] or match["upto"]:
        return 0, one
    if (match["since"] or match["on"]) and not match["two"]:
        return one, OPEN
    return one, two


# Papers on a topic


@dataclass(frozen=True, slots=True)
class WantedPapers:
    """The papers that a question asks for: those on a topic, and without others."""

    topic: str = ""  # "" for any
    without: tuple[str, ...] = ()  # topics that they have nothing about
    other_than: tuple[str, ...] = ()  # papers that they are not, or topics if no papers are called so
    is_understood: bool = True  # False: it denies something that no search for words can deny


_FOR_PAPERS = re.compile(
    # "Which of my recent papers ...", "Are there any studies ...", "Is there a paper ..."
    r"\W*(?:(?:please |in )?(?:which|what|how many|list|name|show|find|give|are there|do (?:i|we|you) have)?"
    r"\s*(?:(?:me|any|all|some|other|of|the|my|these|those)\s+)*"
    r"(?P<kind>(?:(?!(?:how|why|when|where|who|to) )[\w-]+ ){0,2}?)(?:papers|articles|publications|studies)"
    r"|(?:is there|do (?:i|we|you) have) (?:an?|any|one) (?:paper|article|publication|study))\b(?P<rest>.*)"
    # "What do I have on ...", "Is there anything here about ..."
    r"|\W*(?:(?:what(?:['’]s)?|is there|are there|do (?:i|we|you) have|have (?:i|we)|got) )*"
    r"(?:(?:else|do (?:i|we|you) have|is there|have (?:i|we)|got|anything|something|here|in)\s)+"
    r"(?P<have>(?:on|about)\b.*)",
    re.I | re.S,
)
# Words between these and the topic: "that deal with", "do I have here about", "which use or evaluate"
_FILLER = _VERBS | frozenset(
    """
    a all also an and any anything are articles at be been by but can collection could did do does folder for from give
    gives got had has have here i in is it library looks look make makes making my of on or papers something studies
    that the their there these they this those ones to us was we were what which who with work works you word
    words term both either
    """.split()
)
_DENIES = re.compile(
    r"\b(?:(?P<verb>not(?! only| just)|never|cannot|fail(?:s|ed|ing)? to|(?:are|is|do|does|did|have|has|ca)n['’]?t)"
    r"|(?P<other>other than|(?:any|every)thing but|except(?: for)?|excluding|apart from|besides)"
    r"|neither|without|no|nothing|none|lack(?:s|ing)?|omit(?:s|ting)?|avoid(?:s|ing)?|ignor(?:es?|ing))\b",
    re.I,
)
_ONE_PAPER = re.compile(r"(?:which|what|is there an?|any) (?:paper|article|publication)(?!s)\b", re.I)


def wanted_papers(question: str) -> WantedPapers:
    """What a question for papers asks for; nothing if it asks for no papers, or for those by a person or of some years.

    >>> wanted_papers("which papers deal with hazard pointers?").topic, wanted_papers("What does the paper say?").topic
    ('hazard pointers', '')
    >>> wanted_papers("which papers use Rust but not C?")
    WantedPapers(topic='Rust', without=('C',), other_than=(), is_understood=True)
    """
    plain = one_line(question).strip(" ?.!")
    if _DENIES.search(plain) and (one := _ONE_PAPER.match(plain)):  # "which paper does not use Rust"
        several = wanted_papers(f"{one.group()}s{plain[one.end() :]}")
        return several if several.without or several.other_than else WantedPapers()
    about = library_question(plain)
    if isinstance(about, LibraryQuestion) and about.is_searched:
        topics = [condition for condition in about.conditions if condition.field == "about"]
        lacking = tuple(each for one in topics if one.is_denied for each in re.split(r"\s+n?or\s+", one.words))
        others = tuple(each.words for each in about.conditions if each.field == "paper")
        return WantedPapers(" ".join(each.words for each in topics if not each.is_denied), lacking, others)
    match = _FOR_PAPERS.fullmatch(plain)
    if match is None or isinstance(about, FactsQuestion) or (about and all(each.is_sure for each in about.conditions)):
        return WantedPapers()
    kind, rest = match["kind"] or "", match["rest"] or match["have"] or ""
    denied = _DENIES.search(rest)
    if denied is None:
        return WantedPapers(f"{kind.strip()} {_topic(rest)}".strip() if rest.strip() else "")
    before, after = rest[: denied.start()], rest[denied.end() :].split()
    joined = before.split()[-1:] in (["but"], ["and"])
    if denied["verb"] and not joined and not (after and after[0].casefold() in _VERBS | {"have", "make", "any"}):
        return WantedPapers(f"{kind.strip()} {_topic(rest)}".strip(), is_understood=False)
    without, also = _split_denied(after, is_other=bool(denied["other"]))
    topic = " ".join(filter(None, (kind.strip(), _without_fillers(_topic(before)), _topic(also))))
    if not without:  # "in which papers is Rust not used"
        topic, without = "", (topic,)
    if denied["other"]:
        return WantedPapers(topic, other_than=without)
    return WantedPapers(topic, without) if all(without) else WantedPapers(_topic(rest), is_understood=False)


def _split_denied(words: Sequence[str], *, is_other: bool) -> tuple[tuple[str, ...], str]:
    """The topics among the words after a denial, and what they say is there: "use R or C, but mention Rust"."""
    denied, _, also = _topic(" ".join(words)).partition(" but ")
    if is_other:  # "other than Raft discuss elections"
        names = denied.split()
        end = next((place for place, word in enumerate(names) if word.casefold() in _VERBS), len(names))
        denied, also = " ".join(names[:end]), " ".join((*names[end:], also))
    parts = re.split(r",?\s+(?:n?or|and (?:not|neither))\s+|,\s*", denied)
    return tuple(filter(None, (_without_fillers(_topic(part)) for part in parts))), also


def _topic(rest: str) -> str:
    """The words after the fillers."""
    words = rest.split()
    while words and words[0].strip(",;:").casefold() in _FILLER:
        del words[0]
    return " ".join(words).strip(" ,;:")


def _without_fillers(topic: str) -> str:
    """A topic without the fillers at its end: "otters that"."""
    words = topic.split()
    while words and words[-1].strip(",;:").casefold() in _FILLER:
        del words[-1]
    return " ".join(words)
