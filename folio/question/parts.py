"""The parts of a question: its questions, and the things that it compares or joins; its acronyms. For English. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise, takewhile

from folio.text import STOP_WORDS, one_line, plain_words, sentence_spans, tokenize

MOST_PARTS = 6
LONGEST_QUESTION = 80  # words; a longer text is a question with what comes before it
_PREPOSITION = r"(?:about|at|by|during|for|from|in|into|of|on|through|to|under|with)"
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|must)"
_WH = r"(?:how|what|when|where|which|who|whom|whose|why)"
_CONTRACTED = re.compile(r"\b(how|what|when|where|who|why)['’]?s\b", re.I)  # "whats"

# The start of a second question: "... and how ...", "...; in which ...", "..., and does it ..."
_NEXT_QUESTION = re.compile(
    rf"(?:\s*[;?]\s*(?:and\s+)?|\s*,?\s+(?:and|but)\s+)(?=(?:(?:{_PREPOSITION}|[a-z]+ly)\s+)?{_WH}\b)"
    rf"|\s*[;?]\s*(?:and\s+)?(?={_AUXILIARY}\b)"
    rf"|\s*,?\s+(?:and|but)\s+(?=(?:(?:do|does|did)\s+\w+|(?:can|could|{_AUXILIARY})\s+(?:it|they|there))\s)",
    re.I,
)
# A question after a comma, by its word order, and no relative clause: ", in which language is ..."
_LISTED_QUESTION = re.compile(
    rf",\s+(?=(?:{_PREPOSITION}\s+)?(?:(?:how|what|why)\b|(?:which|whose)\s+[\w-]+)(?:\s+[\w-]+){{0,3}}?\s+{_AUXILIARY}\b)",
    re.I,
)
# What several questions are about: "The notes of Misra: which ..."
_LEAD = re.compile(rf"(?P<about>[^:;?]+):\s+(?=(?:{_PREPOSITION}\s+)?{_WH}\b)", re.I)
_PRONOUN = re.compile(
    rf"\b(?:which ones?|it|its|they|them|their|he|him|his|she|her|this|these|those|{_PREPOSITION} that)\b", re.I
)
# "which simulator was", "how many notebooks are", and "which one" or "how many in" in a later question
_ASKED_THING = re.compile(
    rf"\b(?:which|what|how (?:many|much))\s+(?P<thing>(?!one)[\w-]+(?:(?:\s+[\w-]+){{0,2}}?(?=\s+{_AUXILIARY}\b))?)",
    re.I,
)
# A question without a verb, and the next one with it: "How many courses and how many professors does it comprise"
_FOR_NOUN = r"(?P<asked>how(?=\s+m)|which|what)(?:\s+(?:many|much))?"
_NOUN_ALONE = re.compile(rf"{_FOR_NOUN}(?:\s+(?!{_AUXILIARY}\b)[\w-]+){{1,2}}", re.I)
_ITS_VERB = re.compile(rf"{_FOR_NOUN}(?:\s+[\w-]+){{1,3}}?\s+(?P<verb>{_AUXILIARY}(?:\s+\S+){{2,}})$", re.I)
_TELL = r"(?:compare|contrast|define|describe|discuss|explain|give|list|name|outline|show|state|summari[sz]e|tell)"
_ASKS = re.compile(rf"\b{_WH}\b|^(?:{_AUXILIARY}|{_TELL})\b", re.I)
_BEGINS_QUESTION = re.compile(rf"(?:{_PREPOSITION}\s+)?(?:{_WH}|{_AUXILIARY})\b", re.I)
# Pronouns of a later question that mean the thing of the first; what a possessive may be of in its own question
_REFERENCE = re.compile(r"\b(?:(?P<whose>its|their|his|her)(?=\s\w)|it|they|them|he|she|him)\b", re.I)
_ONLY_ASKS = re.compile(rf"\b(?:{_WH}|{_AUXILIARY})(?:n['’]?t)?\b", re.I)
_DEFINITE = re.compile(r"\bthe\s+(\w+)", re.I)
_NAMED = re.compile(r"\b[A-Z0-9]")
_ALL = re.compile(r"\b(?:each|both|either)\b(?=\W*$)", re.I)  # a question about several things, which is no further one
_PLURAL = frozenset({"they", "them", "their"})
_NO_CONTEXT = STOP_WORDS | {"many", "much"}  # words of a question that say nothing about what it is about
_OWN_THING = re.compile(r"\b(?:do|does|did|can|could|will|would)\s+(?:(?:the|an?)\s+\w|\w+s\b|(?-i:[A-Z]))", re.I)
# The thing of a first question, where its words show where that ends: a name; what ends with the question or before a
# preposition ("How thick is the ice at the Konkordiaplatz"); what stands before a verb of one word ("What does the raft
# carry"). "How does the system store data" does not show it.
_ENDS = rf"$|[,;:?]|(?:{_PREPOSITION}|its|their|the|an?)\b"
_SUBJECT = re.compile(
    rf"\b(?i:is|are|was|were)\s+(?P<noun>(?:the|an?)\s+(?:(?!\w+ed\b)[\w-]+\s*){{1,3}}?"
    rf"(?:of\s+(?:(?!{_PREPOSITION}\b)[\w-]+\s*){{1,5}}?)?)(?=$|[,;:?]|(?!of\b){_PREPOSITION}\b)"
    rf"|\b(?i:{_AUXILIARY})\s+(?:(?:the|an?)\s+)?(?P<name>[A-Z][\w+-]*(?:\s+[A-Z][\w+-]*)*)"
    rf"|\b(?i:do|does|did)\s+(?P<doer>(?:the|an?)\s+[\w-]+|(?!(?:the|an?)\b)[\w-]+(?:\s+[\w-]+)??)\s+[\w-]+\s*(?={_ENDS})"
)
# A question of one word that asks for something by itself: "what is Paxos"
_DEFINITION = re.compile(r"\b(?:what|who)\s+(?:is|are|was|were)\b", re.I)
_WHICH_ONE = re.compile(
    rf"\b(?P<which>which|what) ones?\b|^(?P<many>how (?:many|much))(?=\s+(?!of\b){_PREPOSITION}\b)", re.I
)

# A repeated preposition: "of otters and of seals", "with ThermoState, and how with ParFlow"
_REPEATED = re.compile(
    rf"^(?P<head>.*\S)\s+(?P<again>{_PREPOSITION})\s+(?!{_WH}\b)(?P<one>(?:(?!\b(?P=again)\b).)+?)"
    rf",?\s+and\s+(?:(?:how|when|where|why)\s+)?(?P=again)\s+(?!{_WH}\b)(?P<two>.+)$",
    re.I,
)

_COMPARISONS = (
    re.compile(
        # not "the table where they compare A with B"
        r"(?<!that )(?<!which )(?<!who )(?<!we )(?<!they )\bcompare\s+(?!(?:to|with)\b)(?P<one>[^?]{1,160}?)"
        r"\s+(?:and|with|to|versus|vs\.?)\s+(?P<two>[^?]{1,160})",
        re.I,
    ),
    re.compile(r"\bdifferen(?:ces?|t)\s+between\s+(?P<one>[^?]{1,160}?)\s+and\s+(?P<two>[^?]{1,160})", re.I),
    re.compile(
        r"\bhow\s+(?:do|does|did|is|are)\s+(?P<one>[^?]{1,160}?)\s+(?:differ(?:ent)?\s+from|compare[sd]?\s+(?:to|with))\s+"
        r"(?P<two>[^?]{1,160})",
        re.I,
    ),
    re.compile(
        r"\b(?:how|what)\s+(?:do|does|did|is|are)\s+(?P<one>[^?]{1,160}?)\s+and\s+(?P<two>[^?]{1,160}?)"
        r"\s+(?:differ(?:ent)?|compare|have in common)\b",
        re.I,
    ),
    re.compile(r"(?P<one>[\w .+/-]{1,60}?)\s+(?:versus|vs\.?)\s+(?P<two>[\w .+/-]{1,160})", re.I),
    re.compile(
        rf"^{_WH}\b[^,?]{{1,80}},\s+(?!and\b|but\b)(?P<one>[^?]{{1,120}}?),?\s+or\s+(?P<two>[^,?]{{1,60}})\??$", re.I
    ),
)
# Between compared things: "A, B and C", "A vs B vs C"
_BETWEEN_THINGS = re.compile(r",\s*(?:(?:and|or)\s+)?|\s+(?:and|or|with|versus|vs\.?)\s+", re.I)
_LIST = re.compile(r"[^,?]+(?:,\s+[^,?]+)*,?\s+(?:and|or)\s+[^,?]+\??")
# What is no thing after the last one: "..., and which is faster"
_NO_THING = re.compile(rf"(?:{_WH}|{_AUXILIARY}|{_TELL}|it|its|they|their|say)\b", re.I)
# The text after the last thing of a comparison
_AFTER_THING = re.compile(
    r"\s*(?:[,;:?!]|\.(?:\s|$)|\s[–—-]\s|\b(?:in|on|for|with respect to|regarding|when|at|by|as)\b).*$", re.I | re.S
)
_ARTICLE = re.compile(rf"^(?:{_PREPOSITION}\s+)?(?:what (?:is|are) )?(?:(?:the|an?)\s+)?", re.I)
# "How long does A take compared to B"
_COMPARED_TO = re.compile(r"^(?P<one>.+?),?\s+compared\s+(?:to|with)\s+(?P<two>.+)$", re.I)
_ASKED_FIRST = re.compile(rf"^(?:{_PREPOSITION}\s+)?{_WH}(?:\s+(?!{_AUXILIARY}\b)[\w-]+){{0,3}}", re.I)
# Words and signs that only express the comparison
_COMPARING = re.compile(
    r"[,;:?!]|\.(?!\w)|\b(?:compare[sd]?|comparison|differences?|different(?:ly)?|differ|between|from|versus|vs\.?|both|similar(?:ities)?"
    r"|and|or|with|to|than|in common|how|what|which|do|does|did|is|are|the|of|their|each)\b",
    re.I,
)

# Joined names, with the nouns after them: "which X do A, B and C use"
_NAME = r"(?:(?:the|an?)\s+)?[A-Z0-9][\w.+/-]*(?:\s+[A-Z0-9][\w.+/-]*){0,5}"
_ITEM = rf"{_NAME}(?:\s+(?!and\b)[a-z][\w-]*){{0,3}}?"
_JOINED = re.compile(rf"\b(?:both\s+)?(?P<first>{_ITEM}(?:,\s+{_ITEM}){{0,3}}),?\s+and\s+(?P<last>{_NAME})")


def question_parts(question: str) -> tuple[str, ...]:
    """The parts to search one by one, at most MOST_PARTS; () for a question without parts.

    Each part has the words that all share. References to an earlier part are only resolved for "which one".

    >>> question_parts("How is Raft tested, and which language is Paxos written in?")
    ('How is Raft tested', 'which language is Paxos written in')
    >>> question_parts("What is the difference between Raft and Paxos in leader election?")
    ('Raft in leader election', 'Paxos in leader election')
    """
    plain = _whole_words(question).strip(" ?")
    rules = (_repeated, _questions, _compared, _compared_to, _joined)
    return next((parts for rule in rules if (parts := _several(rule(plain)))), ())


def last_question(text: str) -> str:
    """The last question of a long text, such as a pasted abstract; a shorter text, or one without any, unchanged."""
    if len(text.split()) <= LONGEST_QUESTION:
        return text
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    asked = [one for one in sentences if one.endswith("?") or _BEGINS_QUESTION.match(one)]
    return next((one for one in reversed(asked) if len(one.split()) <= LONGEST_QUESTION), text)


def questions_in(question: str) -> tuple[str, ...]:
    """The several questions in one; () for a single question. A pronoun in a later one is left as it is."""
    return _several(_questions(_whole_words(question)))


def resolved(first: str, part: str) -> str:
    """A later question of several with the thing of the first in place of its pronoun; if that is not known, with the
    words of the first.

    A possessive may be of a thing in its own question: "how does the disk write its log".
    """
    pronoun = _PRONOUN.search(part)
    if pronoun is None:
        return _with_words_of(first, part) if _leans_on(first, part) else part
    of_lead = first.partition(", ")[0]
    if of_lead != first and part.startswith(f"{of_lead}, "):  # what both are about
        return part
    match, subject = _REFERENCE.match(part, pronoun.start()), _SUBJECT.search(first)
    if match and match["whose"] and _OWN_THING.search(part, 0, match.start()):
        return part
    if match is None or subject is None:
        return _with_words_of(first, part)
    thing = (subject["name"] or subject["noun"] or subject["doer"]).strip()
    head = thing.partition(" of ")[0]
    if match.group().lower() in _PLURAL and not (subject["name"] or head.endswith("s")):
        return _with_words_of(first, part)
    return f"{part[: match.start()]}{thing}{'’s' * bool(match['whose'])}{part[match.end() :]}"


def _leans_on(first: str, part: str) -> bool:
    """Whether a later question without a pronoun needs the first: "in which language", "who runs the course"."""
    known = plain_words(first)
    is_of_first = any(noun.lower() in known for noun in _DEFINITE.findall(part)) and not _NAMED.search(part, 1)
    return is_of_first or not _stands(part)


def _with_words_of(first: str, part: str) -> str:
    words = (word for word in plain_words(first) if word not in _NO_CONTEXT and len(word) > 1)
    return f"{part} ({' '.join(words)})"


def compared_things(question: str) -> tuple[str, ...]:
    """The things that a question compares; () for none."""
    for pattern in _COMPARISONS:
        if match := pattern.search(question):
            joiner, last = question[match.end("one") : match.start("two")].split(), match["two"]
            # "A with B, C and D", but not "A and B, in short"
            lists = bool({"with", "to", "from"} & set(joiner)) and _LIST.fullmatch(last) is not None
            last = last if lists else _AFTER_THING.sub("", last)
            named = [*_BETWEEN_THINGS.split(match["one"]), *takewhile(_is_thing, _BETWEEN_THINGS.split(last))]
            cleaned = (_AFTER_THING.sub("", _ARTICLE.sub("", name.strip())) for name in named)
            things = tuple(dict.fromkeys(thing for thing in cleaned if tokenize(thing)))
            if len(things) > 1:
                return things
    return ()


def thing_in(part: str, things: Sequence[str]) -> str:
    """The thing that a part of the question is about, the longest of several; "" for none."""
    return max((thing for thing in things if thing in part), key=len, default="")


def _whole_words(question: str) -> str:
    return _CONTRACTED.sub(r"\1 is", one_line(question))


def _is_thing(text: str) -> bool:
    return not _NO_THING.match(text.strip())


def _several(parts: list[str]) -> tuple[str, ...]:
    distinct = tuple(dict.fromkeys(parts))
    return distinct[:MOST_PARTS] if len(distinct) > 1 else ()


def _questions(question: str) -> list[str]:
    """The questions in one, the first with the verb of the next if it has none; [] if one asks for nothing."""
    if not _NEXT_QUESTION.search(question):
        return []
    lead = _LEAD.match(question)
    question = question[lead.end() :] if lead else question
    split = chain.from_iterable(_LISTED_QUESTION.split(part) for part in _NEXT_QUESTION.split(question))
    first, *others = (part.strip(" ,.;?!") for part in split)
    if not all(tokenize(_ONLY_ASKS.sub("", part)) or re.fullmatch(_WH, part, re.I) for part in others):
        return []  # "and which do not"
    if lead:
        first, *others = (f"{lead['about']}, {part}" for part in (first, *others))
    elif not _ASKS.search(first):  # what all the questions are about: "In the notes of Misra, which ..., and how ..."
        first, *others = (f"{first}, {part}" for part in others)
    if asked := _ASKED_THING.search(first):
        thing = asked["thing"]
        others = [_WHICH_ONE.sub(lambda one: f"{one['which'] or one['many']} {thing}", part) for part in others]
    parts = [first, *others]
    for at, (part, following) in enumerate(pairwise(parts)):
        alone, verb = _NOUN_ALONE.fullmatch(part), _ITS_VERB.match(following)
        if alone and verb and alone["asked"].casefold() == verb["asked"].casefold():
            parts[at] = f"{part} {verb['verb']}"
    return parts if _stands(parts[0]) and not any(map(_ALL.search, parts)) else []


def _stands(part: str) -> bool:
    """Whether one of several questions has something to find by itself."""
    tokens = len(tokenize(part))
    return tokens > 1 or (tokens == 1 and _DEFINITION.search(part) is not None)


def _repeated(question: str) -> list[str]:
    """The question with each of two phrases after the same preposition."""
    match = _REPEATED.match(question)
    if match and not _NEXT_QUESTION.search(match["two"]):
        return [f"{match['head'].rstrip(' ,')} {match['again']} {match[name]}" for name in ("one", "two")]
    return []


def _compared(question: str) -> list[str]:
    """Each compared thing with the aspects of the comparison."""
    things = compared_things(question)
    texts, rest = list[str](), question
    for thing in things:
        between, _, rest = rest.partition(thing)
        texts.append(between)
    before, *betweens = texts or [""]
    aspects = (f"{before} {between} {rest}" for between in (*betweens, ""))
    parts = (one_line(_COMPARING.sub(" ", f"{thing} {of}")).strip() for thing, of in zip(things, aspects, strict=False))
    return [f"What is {part}" if part == thing else part for part, thing in zip(parts, things, strict=True)]


def _compared_to(question: str) -> list[str]:
    """The question before "compared to", and the same question about the thing after it."""
    match = _COMPARED_TO.match(question)
    first = match and _ASKED_FIRST.match(match["one"])
    return [match["one"], f"{first.group()} {match['two']}"] if match and first else []


def _joined(question: str) -> list[str]:
    """The question with each of the names that "and" joins."""
    if match := _JOINED.search(question):
        before, after = question[: match.start()], question[match.end() :]
        names = [*re.split(r",\s+", match["first"]), match["last"]]
        return [f"{before}{name}{after}".strip(" ?") for name in names]
    return []


# Acronyms

MOST_ACRONYMS = 2  # spelled out in a question, and added to it
LONGEST_FORM = 200  # characters of a long form

# Begins and ends with a capital: "CRDTs", "SDS-WAS"
_ACRONYM = re.compile(r"\b[A-Z][A-Za-z-]*[A-Z]s?\b")
_DEFINED = re.compile(rf"\(\s*(?P<acronym>{_ACRONYM.pattern})\s*[),;]")


def spelled_out(question: str, long_form: Callable[[str], str]) -> str:
    """The question with the long form before each acronym, which is in brackets; "" if no long form is known.

    long_form: acronym -> its long form, or "".
    """
    spelled = question
    for acronym in list(dict.fromkeys(_ACRONYM.findall(question)))[:MOST_ACRONYMS]:
        words = long_form(acronym.removesuffix("s"))
        if words and words.casefold() not in question.casefold():
            spelled = re.sub(rf"\b{re.escape(acronym)}\b", f"{words} ({acronym})".replace("\\", r"\\"), spelled)
    return spelled if spelled != question else ""


def shortened(question: str, texts: Iterable[str]) -> str:
    """The question and the acronyms that these texts define for its words; "" if there are none."""
    own = f" {' '.join(plain_words(question))} "
    defined = (acronym for acronym, words in _definitions(texts) if f" {' '.join(plain_words(words))} " in own)
    added = [acronym for acronym in dict.fromkeys(defined) if f" {acronym.casefold()} " not in own][:MOST_ACRONYMS]
    return f"{question.rstrip(' ?')} {' '.join(added)}" if added else ""


def long_form(acronym: str, texts: Iterable[str]) -> str:
    """The long form before "(ACRONYM)", from the first text that defines it; "" if none does.

    Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation definitions in biomedical text": matches
    the letters of the acronym backwards, and the first letter begins a word. The long form has at most min(n + 5, 2n)
    words for n letters.
    """
    defined = re.compile(rf"\(\s*{re.escape(acronym)}s?\s*[),;]")
    for text in texts:
        for match in defined.finditer(text):
            if words := _words_before(acronym, text, match.start()):
                return words
    return ""


def _definitions(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each acronym that the texts define, with its long form."""
    for text in texts:
        for match in _DEFINED.finditer(text):
            acronym = match["acronym"].removesuffix("s")
            if words := _words_before(acronym, text, match.start()):
                yield acronym, words


def _words_before(acronym: str, text: str, end: int) -> str:
    """The long form of an acronym before a place in a text; "" if there is none."""
    letters = [char.casefold() for char in acronym if char.isalnum()]
    if len(letters) < 2:
        return ""
    most = min(len(letters) + 5, 2 * len(letters))
    before = text[max(0, end - LONGEST_FORM) : end]
    words = _matching_end(letters, " ".join(before.split()[-most:]))
    return "" if acronym.casefold() in words.casefold() else words


def _matching_end(letters: list[str], words: str) -> str:
    """The end of these words that the letters match; "" if they do not match."""

    def begins_word(at: int) -> bool:
        return at == 0 or not words[at - 1].isalnum()

    at = len(words)
    for place in range(len(letters) - 1, -1, -1):
        at -= 1
        while at >= 0 and not (words[at].casefold() == letters[place] and (place or begins_word(at))):
            at -= 1
        if at < 0:
            return ""
    return words[at:]
