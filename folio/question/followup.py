"""Follow-up questions without a model: which questions need earlier ones, what they mean, and how to search them.

Rules resolve the references; search (folio/search/retriever.py) does not rely on them alone. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from folio.answer_types import Answer
from folio.question.kind import asks_for_number
from folio.text import STOP_WORDS, one_line, tokenize


class NotUnderstoodError(Exception):
    """It is not clear what a follow-up asks. The message asks back."""


def standalone(question: str, history: Sequence[Answer]) -> str:
    """A follow-up with its references filled in; a question without references is returned unchanged.

    "Explain the second one" is about the second item or sentence of the last answer. "And for GPT-2?" repeats the last
    question with another name. Other follow-ups get the subject of the conversation, in place of "it" or "they" or at
    the end: "Why, for Mikrokosmos?" They get nothing more, because the rest of the earlier question would find its old
    answer again. Raises NotUnderstoodError.
    """
    if not history:
        return question
    if resolved := _resolve_ordinal(question, history[-1]):
        return resolved
    if not any(map(str.isalnum, question)):  # "???"
        shown = one_line(question)
        raise NotUnderstoodError(f"It is not clear what “{shown}” asks. Please ask it as a whole question.")
    if swapped := _swap_name(question, history[-1].standalone_question):
        return swapped
    if phrases := _phrases(history[-1]) if is_followup(question) else []:
        return _refer(question, phrases)
    return filled_in(question, [turn.question for turn in history])


def filled_in(question: str, before: Sequence[str]) -> str:
    """A question with its reference to earlier questions filled in ("How large is it?"); unchanged without one."""
    topic = _topic(before) if before and is_followup(question) else []
    return _fill_in(question, topic) if topic else question


def readings(question: str, meant: str, history: Sequence[str]) -> list[str]:
    """The readings of a question to search with; the first is the most explicit, for the reranker.

    meant: the question with its references filled in. history: the earlier questions. The readings are `meant`, the
    question as typed, and the question after the subject of the last standalone question, after the last question, and
    after the last two. The first is `meant`, or the one with the subject if nothing was filled in. A question that
    names its own subject may have left the earlier one: its only readings are `meant` and the question after the last
    one, so that an earlier subject never outweighs its own.
    """
    if not history:
        return [meant]
    in_context = [" ".join([*history[-count:], question]) for count in (1, 2)]
    if names_its_subject(question):
        return list(dict.fromkeys([meant, in_context[0]]))
    with_subject = f"{subject(_anchor(history)).replace(',', '')} {question}".strip()
    first = [with_subject, meant] if meant == question else [meant, with_subject]
    return list(dict.fromkeys([*first, question, *in_context]))


def senses(question: str, meant: str, history: Sequence[str]) -> list[str]:
    """The possible meanings of a follow-up; only `meant` for one that names its own subject.

    They are the question with its references filled in, as typed, and the first of its `readings`; some may be equal.
    """
    if not history or names_its_subject(question):
        return [meant]
    return [meant, question, readings(question, meant, history)[0]]


# A joining word at the start: "And ..."
_JOINED = r"^\W*(?:(?:and|but|or|so|then|also)\b\W*)?"
# The start of a question: a joining word, a preposition, a question word
_LEAD = re.compile(
    _JOINED + r"(?:(?:in|on|at|for|from|to|with|by|of|under|into|through|about)\s+)?"
    r"(?:how(?:\s+(?:many|much|long|often|far|well|large|big|old|fast))?|what|which|who|whom|whose|where|when|why)\b\s*",
    re.I,
)
_AND = re.compile(r"^\W*(?:and|but|or|so|then|also)\b\W*", re.I)
# A name: words with a capital or a digit ("CFD Python", "SP 800-207"), with function words in between
_NAME_WORD = r"[\w.+/-]*[A-Z\d][\w.+/-]*"
_NAME = re.compile(rf"(?<![\w.+/-]){_NAME_WORD}(?:\s+(?:(?:of|and|the|for|in)\s+)?{_NAME_WORD})*")
# Separators of noun phrases
_BETWEEN = re.compile(
    r"[,;:()]|\b(?:the|an?|of|in|on|at|for|from|to|with|by|under|into|through|about|between|and|or|as|that|which|than"
    r"|using|is|are|was|were|be|been|do|does|did|has|have|had|can|could|will|would|one|someone|there)\b",
    re.I,
)


def subject(question: str) -> str:
    """The subject of a question: its names, or else its last two noun phrases, or "".

    An English question begins with what it asks for; the subject follows.

    >>> subject("How many core lessons make up the CFD Python learning module?")
    'CFD Python'
    >>> subject("Which criterion is used for trees in the parsimony method?")
    'trees, parsimony method'
    """
    bare = question.strip().rstrip("?!. ")
    rest = _LEAD.sub("", bare)
    if rest == bare and rest.partition(" ")[0][1:].islower():
        rest = rest[:1].lower() + rest[1:]  # the first word of a sentence is no name
    names = list(dict.fromkeys(_NAME.findall(rest)))
    if any(sum(map(str.isalpha, name)) > 1 for name in names):  # "R" alone or a year does not identify a subject
        return " ".join(names)
    phrases = [one_line(phrase) for phrase in _BETWEEN.split(rest)]
    return ", ".join([phrase for phrase in phrases if tokenize(phrase)][-2:])


# References to something before. "It" in "is it safer to buy" and "that" in "the loss that falls" are none.
_BACK = re.compile(
    r"\b(?:it|its|itself|they|them|theirs?|he|she|his|hers?|him)\b"
    r"|\b(?:this|that|these|those)\b(?=\s*(?:[?.!,]|$"
    r"|(?:is|are|was|were|do|does|did|can|could|will|would|has|have|mean|work|happen|affect|apply|in|for|on|too|further"
    r"|more|again)\b))",
    re.I,
)
_EMPTY_IT = re.compile(r"\bit(?:'s)?\s+(?:(?:is|be|was)\s+)?(?:\w+\s+){0,2}(?:to|that|if|when)\b", re.I)
_THAT_CLAUSE = re.compile(
    r"\b(?!(?:is|are|was|were|do|does|did|can|could|will|would|and|but|so|if|when|why|how|what|like|of|about|explain)\b)"
    r"\w+\s+$",
    re.I,
)
# A question about the thing that follows: "How many square kilometres does", "How many samples were drawn for"
_ASKED_OF = re.compile(
    _JOINED + r"(?:\w+\s+)?(?:how|what|which|who|whose|when|where|why)\b"
    r"(?:(?!\b(?:if|when|while|that|because)\b)[^,;:])*"
    r"\b(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should"
    r"|for|of|on|in|with|by|to|from|at|about|into|using)\s+$",
    re.I,
)
# A whole question with a subject, before another one: "What is Zab and which", so that "it" is Zab
_EARLIER_QUESTION = re.compile(
    r"\b(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should)\s+(?P<subject>.*?)"
    r"(?:[,;]|\b(?:and|but))\s+(?:(?:in|on|at|for|from|to|with|by)\s+)?(?:how|what|which|who|whose|when|where|why)\b",
    re.I,
)
_BEFORE_REFERENCE = 1  # content words; after more, a reference is to one of them, except in _ASKED_OF
_LONGEST_PHRASE = 4  # words; `subject` could not split a longer one
_FEW_WORDS = 3  # a question with fewer content words needs an earlier question


def is_followup(question: str) -> bool:
    """Whether a question needs an earlier one: it refers back, or has few content words and no name."""
    if _ordinal_reference(question) is not None or _reference(question) is not None:
        return True
    is_fragment = bool(_AND.match(question)) and not _ASKS.search(question)  # "And on Google's alternative?"
    return len(_content(question)) < _FEW_WORDS and (is_fragment or not _names(question))


def names_its_subject(question: str) -> bool:
    """Whether a question has a name ("BERT", "the Aletsch glacier") and no hint at an earlier question."""
    return bool(_names(question)) and not is_followup(question) and not _HINT.search(question)


# Hints at an earlier question that are no references
_HINT = re.compile(
    r"\b(?:such(?! as\b)|same|else|others?|both|former|latter|(?:this|that|these|those) \w+"
    r"|(?:the|which|another) ones?)\b"
    r"|^\W*(?:and|but|or|so|then|also|how so|what about|how about)\b",
    re.I,
)
_ASKS = re.compile(
    r"\b(?:how|what|which|who|whose|where|when|why|is|are|was|were|does|do|did|can|could|tell|explain)\b", re.I
)


def _content(question: str) -> set[str]:
    """The content words of a question, lower case."""
    return {word for word in re.findall(r"\w+", question.lower()) if word not in STOP_WORDS}


def _names(question: str) -> list[str]:
    """The names in a question, without the capital that begins a sentence."""
    names = []
    for match in _NAME.finditer(question):
        words = match.group().strip(".").split()
        begins = not question[: match.start()].strip() or question[: match.start()].rstrip()[-1:] in ".?!"
        if begins and words[0][1:].islower():
            del words[0]
        while words and words[0].lower() in STOP_WORDS:
            del words[0]
        while words and words[-1].lower() in STOP_WORDS:
            del words[-1]
        if sum(map(str.isalpha, "".join(words))) > 1 and any(map(str.isupper, "".join(words))):
            names.append(" ".join(words))
    return list(dict.fromkeys(names))


def _reference(question: str) -> re.Match[str] | None:
    """The first word that refers to something before the question, which its own words before it may be instead."""
    for match in _BACK.finditer(question):
        before = question[: match.start()]
        earlier = _EARLIER_QUESTION.search(before)
        is_within = len(_content(before)) > _BEFORE_REFERENCE and not _ASKED_OF.match(before)
        is_within |= earlier is not None and bool(_content(earlier["subject"]))
        if is_within or _EMPTY_IT.match(question, match.start()):
            continue
        if match.group().lower() == "that" and _THAT_CLAUSE.search(before):
            continue
        return match
    return None


def _topic(questions: Sequence[str]) -> list[str]:
    """The names in the last question that has any, or else the subject of the last standalone question."""
    named = next((names for question in reversed(questions) if (names := _names(question))), None)
    if named:
        return named
    return [phrase for phrase in subject(_anchor(questions)).split(", ") if 0 < len(phrase.split()) <= _LONGEST_PHRASE]


def _anchor(questions: Sequence[str]) -> str:
    """The last standalone question, or else the last question."""
    return next((question for question in reversed(questions) if not is_followup(question)), questions[-1])


_POSSESSIVES = frozenset({"its", "their", "theirs", "his", "her", "hers"})
_PLURALS = frozenset({"they", "them", "these", "those"})
_PERSONS = frozenset({"he", "she", "him", "his", "her", "hers"})
_MORE = re.compile(
    r"^(?:please\s+)?(?:tell me|say|explain|give me|i want|show me)\b.*\b(?:more|details?|further)$", re.I
)


def _phrases(last: Answer) -> list[NounPhrase]:
    """The noun phrases of the last question; the one that it asks for gets the answer's name for it.

    A number is not asked for, because follow-ups are not about it: "its ice" is not the ice of a length.
    """
    question = last.standalone_question
    if not last.evidence:
        return []
    phrases = noun_phrases(question, [piece.text for piece in last.evidence])
    phrases += [NounPhrase(name) for name in _names(question) if not any(name in phrase.text for phrase in phrases)]
    if asks_for_number(question):
        return [replace(phrase, is_asked_for=False) for phrase in phrases]
    text = last.sentences[0].text if last.sentences else ""
    return [
        replace(phrase, text=name) if phrase.is_asked_for and (name := answered(phrase, text, question)) else phrase
        for phrase in phrases
    ]


def _refer(question: str, phrases: Sequence[NounPhrase]) -> str:
    """A question with a phrase in place of its reference, and the phrase's owner at the end: "..., for the X dataset?"

    The phrase is the one that the last question asked for, or the first with a name, or the first: a subject comes
    before its objects. The owner is the first phrase with a name, or the last phrase.
    """
    rest = _AND.sub("", question.strip()) or question.strip()
    match = _reference(rest)
    word = match.group().lower() if match else ""
    is_plural = word in _PLURALS or word.startswith("their")
    fitting = [phrase for phrase in phrases if not match or phrase.is_plural == is_plural]
    named = [phrase for phrase in phrases if _names(f"- {phrase.text}")]
    owner = (named or phrases)[0 if named else -1]
    if match and (word in _PERSONS or not fitting):
        return _fill_in(question, [owner.as_subject]) if owner in named else _append(rest, owner.as_subject)
    meant = min(fitting, key=lambda phrase: (not phrase.is_asked_for, phrase not in named))
    both = list(dict.fromkeys([meant.as_subject, owner.as_subject]))
    if not match:
        return _append(rest, " and ".join(both))
    filled = _fill_in(question, both[:1])
    return filled if meant in named or len(both) == 1 else _append(filled, both[1])


def _fill_in(question: str, names: Sequence[str]) -> str:
    """A question with these names in place of its reference, or at the end."""
    subjects = " and ".join(names)
    rest = _AND.sub("", question.strip()) or question.strip()
    match = _reference(rest)
    word = match.group().lower() if match else ""
    if match and (len(names) == 1 or word in _PLURALS):
        is_possessive = word in _POSSESSIVES and (word != "her" or re.match(r"\s+\w", rest[match.end() :]))
        ending = "’" if subjects.endswith("s") and not subjects.endswith("ss") else "’s"
        whole = f"{rest[: match.start()]}{subjects}{ending if is_possessive else ''}{rest[match.end() :]}"
        return whole[:1].upper() + whole[1:]
    return _append(rest, subjects)


def _append(question: str, subjects: str) -> str:
    """A question with its subjects at the end: "Why, for Mikrokosmos?"."""
    body, end = re.fullmatch(r"(.*?)\s*([?.!]*)", question, re.S).groups()  # type: ignore[union-attr]
    body = body[:1].upper() + body[1:]
    return f"{body} about {subjects}{end}" if _MORE.match(body) else f"{body}, for {subjects}{end}"


_ELLIPSIS = re.compile(
    _JOINED + r"(?:(?:what|how)\s+about\b)?\s*(?:(?:for|in|of|with|on|at|to|about|by)\s+)?"
    r"(?:the\s+)?(?P<name>[^?.!]+?)\W*$",
    re.I,
)


def _swap_name(question: str, last: str) -> str:
    """The last question with its only name replaced by the follow-up's ("And for GPT-2?"); "" if that is impossible."""
    match = _ELLIPSIS.match(question)
    if not match or match.start("name") == 0 or _NAME.fullmatch(match["name"]) is None:
        return ""
    names = _names(last)
    return last.replace(names[0], match["name"]) if len(names) == 1 and names[0] != match["name"] else ""


_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_WHICH = re.compile(
    rf"\b(?:the\s+)?(?:(?P<word>{'|'.join(_ORDINALS)}|last)|(?P<digits>\d{{1,2}})(?:st|nd|rd|th))\s+"
    r"(?:(?P<one>one|of\s+(?:them|these|those))|point|item|sentence|answer|method|option|step|reason|source|quote)\b"
    r"|(?:\b(?:number|point|item|sentence|no\.)\s*|#)(?P<number>\d{1,2})\b",
    re.I,
)
# The introduction of a list in a sentence, and the separators of its items
_LISTED = re.compile(
    r"(?::|\b(?:include[sd]?|including|such as|namely|are|were|(?:consists?|made(?: up)?|composed) of|comprises?))\s+"
    r"(?!.*:\s)",
    re.S,
)
_SEPARATOR = re.compile(
    r"[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*[•▪‣]\s*|\s*\(?\b(?:[ivx]{1,4}|\d{1,2}|[a-h])\)\s+"
)
_LONGEST_ITEM = 12  # words


def _ordinal_reference(question: str) -> re.Match[str] | None:
    """The reference to an item of the last answer: "the second one", or "step 2" with fewer than three other words.

    "The first step of key generation in ML-DSA" is no such reference: it is clear by itself.
    """
    match = _WHICH.search(question)
    if match and (match["one"] or len(set(tokenize(question[: match.start()] + question[match.end() :]))) < 3):
        return match
    return None


def _resolve_ordinal(question: str, last: Answer) -> str:
    """The question with the item that it refers to filled in; "" if there is no such item."""
    match = _ordinal_reference(question)
    if match is None:
        return ""
    items, are_listed = _items(last)
    word = (match["word"] or "").lower()
    place = len(items) if word == "last" else int(match["digits"] or match["number"] or _ORDINALS.index(word) + 1)
    if not 1 <= place <= len(items):
        return ""
    item = items[place - 1]
    rest = question[match.end() :]
    # A whole sentence fits after a word such as "explain", but not in the middle of a question.
    if are_listed:
        return f"{question[: match.start()]}{item.rstrip(' .')}{rest}"
    if len(item.split()) <= _LONGEST_ITEM and not tokenize(rest):
        return f"{question[: match.start()]}“{item}”{rest.rstrip(' .')}"
    return f"{question} That is: “{item}”"


def _items(answer: Answer) -> tuple[list[str], bool]:
    """The items that a one-sentence answer lists, else the answer's sentences; and whether they are list items."""
    texts = [sentence.text for sentence in answer.sentences]
    if len(texts) == 1 and (listed := _LISTED.search(texts[0])):
        items = [item.strip(" .\n") for item in _SEPARATOR.split(texts[0][listed.end() :])]
        items = [item for item in items if item]
        if len(items) > 1 and all(len(item.split()) <= _LONGEST_ITEM for item in items):
            return items, True
    return texts, False


# Noun phrases without a tagger. A phrase begins after "the", "of" or "how many" in the question. It ends with the last
# word that the evidence also has after such a word and before no content word: "interactive students followed" ends
# after "students". The words between "which" and "did" are a phrase, too.

LONGEST = 6  # words of a phrase
MOST_TEXT = 60_000  # characters of evidence to search

_COUNTS = r"many|several|two|three|four|five|six|seven|eight|nine|ten|\d[\d,.]*"
_PREPOSITIONS = "of|in|for|with|on|by|from|into|between|through|at|about|using|called"
_BEFORE = (
    "(?:the|an?|this|these|those|our|your|their|its|his|her|each|every|any|all|some|no|both"
    rf"|{_PREPOSITIONS}|{_COUNTS})"
)
_PREPOSITION = re.compile(rf"(?:{_PREPOSITIONS})$", re.I)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)"
_WORD = re.compile(r"\w[\w+/'’.-]*\w|\w")
_STARTS = re.compile(
    rf"(?<![\w-])(?P<asked>(?:which|what)(?!\s+{_AUXILIARY}\b))?(?(asked)|{_BEFORE})(?=\s+(?P<first>\w))", re.I
)
_ENDS = re.compile(rf"\s{_AUXILIARY}(?!\w)", re.I)
# What follows a phrase in the evidence where it is whole
_AFTER = rf"(?=\s?[^\w\s]|\s(?:{'|'.join(sorted(STOP_WORDS))})(?!\w)|$)"


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun phrase of a question."""

    text: str
    article: str = ""  # "the", or "" for a phrase without an article
    is_asked_for: bool = False  # "Which ... did"

    @property
    def is_plural(self) -> bool:
        return _is_plural(self.text.split()[-1])

    @property
    def as_subject(self) -> str:
        return f"{self.article} {self.text}".lstrip()


def noun_phrases(question: str, texts: Sequence[str]) -> list[NounPhrase]:
    """The noun phrases of a question after a word such as "the", in order. texts: evidence on its subject."""
    text = one_line(" ".join(texts)[:MOST_TEXT])
    return list(_noun_phrases(question, text)) if text else []


def _noun_phrases(question: str, text: str) -> Iterator[NounPhrase]:
    at = 0
    while start := _STARTS.search(question, at):
        is_count = re.match(_COUNTS, start.group(), re.I) is not None
        words = list(_run(question, start.start("first"), is_count=is_count))
        at = start.end()
        if not words:
            continue
        is_asked_for = start["asked"] is not None
        if is_asked_for and _ENDS.match(question, words[-1].end()):
            last = len(words)
        else:
            last = max((place + 1 for place in range(len(words)) if _is_head(words[: place + 1], text)), default=0)
        if last:
            at = words[last - 1].end()
            article = "" if _PREPOSITION.match(start.group()) else "the"
            yield NounPhrase(question[words[0].start() : at], article, is_asked_for)


def _run(question: str, start: int, *, is_count: bool) -> Iterator[re.Match[str]]:
    """The content words from here on, up to the first other word or sign.

    is_count: a counted noun ends with a plural, or before a name: "many students took part", "many people followed
    Neuromatch".
    """
    end, ends_plural = start, False
    for count, word in enumerate(_WORD.finditer(question, start)):
        if count == LONGEST or word.group().casefold() in STOP_WORDS or question[end : word.start()].strip():
            return
        is_over = ends_plural and not _is_plural(word.group())
        if is_count and count and (is_over or word.group()[0].isupper()):
            return
        yield word
        end, ends_plural = word.end(), _is_plural(word.group())


def _is_plural(word: str) -> bool:
    return word.endswith("s") and word[:1].islower() and not word.endswith(("ss", "us", "is", "ics"))


def answered(phrase: NounPhrase, answer: str, question: str) -> str:
    """The answer's name for the thing asked for: "epinion dataset" for "small dataset"; "" if it has none."""
    head = phrase.text.split()[-1]
    known = {word.group().casefold() for word in _WORD.finditer(question)} | STOP_WORDS
    for match in re.finditer(rf"(?:(?<![\w-])[\w-]+\s){{1,3}}{re.escape(head)}(?![\w-])", one_line(answer), re.I):
        words = match.group().split()
        words = words[max((at + 1 for at, word in enumerate(words) if word.casefold() in STOP_WORDS), default=0) :]
        if len(words) > 1 and not known & {word.casefold() for word in words[:-1]}:
            return " ".join(words)
    return ""


def _is_head(words: Sequence[re.Match[str]], text: str) -> bool:
    """Whether the last of these words ends a noun phrase in the text, by itself or with words before it."""
    for first in range(len(words)):
        phrase = r"\s".join(re.escape(word.group()) for word in words[first:])
        if re.search(rf"(?<![\w-]){_BEFORE}\s(?:[\w-]+\s)?{phrase}{_AFTER}", text, re.I):
            return True
    return False
