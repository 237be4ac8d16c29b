"""Follow-up questions without a model: which lean on earlier ones, what they mean, and with which readings to search.

Pure. The references are resolved by rules; search (folio/search/readings.py) does not rely on them alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.answer.definitions import asked_term
from folio.answer_types import Answer
from folio.text import STOP_WORDS, sentence_spans, tokenize
from folio.types import Paper


class NotUnderstoodError(Exception):
    """Nobody could tell what a follow-up asks. The message asks back, in one sentence or two."""


def standalone(question: str, history: Sequence[Answer]) -> str:
    """A follow-up with its references filled in, as a sentence; a question without any is returned as it is.

    "Explain the second one" means the second item, or else statement, of the last answer; "tell me more" is the last
    question again, "Why?" is it with another question word, and "And for GPT-2?" is it about another thing. Any other
    follow-up is given the subject of the conversation: in place of "it" or "they", or behind it: "Thick, for Aletsch?"
    Nothing more is carried over, because the rest of the earlier question would find its old answer again. Raises
    NotUnderstoodError.
    """
    if not history:
        return question
    last = history[-1]
    if resolved := _resolve_ordinal(question, last):
        return resolved
    if is_unclear(question):
        shown = " ".join(question.split())
        raise NotUnderstoodError(f"It is not clear what “{shown}” asks. Please ask it as a whole question.")
    if asks_for_more(question):
        return last.standalone_question
    if other := _asked_otherwise(question, last.standalone_question) or _swap_name(question, last.standalone_question):
        return other
    return filled_in(question, [turn.question for turn in history], last)


def filled_in(question: str, before: Sequence[str], last: Answer | None = None) -> str:
    """A question with its reference to the questions before it filled in: "How large is it?" As it is without one.

    last: the answer to the last of them, if they were answered.
    """
    about = _topic(before, last) if before and is_followup(question) else []
    return _fill_in(question, about) if about else question


def readings(question: str, meant: str, history: Sequence[str]) -> list[str]:
    """The readings of a question to search with; the first says the most, and is what a reranker should read.

    meant: the question with its references filled in. history: the questions before it. The readings are `meant`, the
    question as typed, and this behind the subject of the last question that stood alone, and behind the last question.
    The first is `meant`, or the one with the subject if nothing was filled in. A question that names its own subject
    may have left the one before: it is read as typed and behind the last question alone.
    """
    if not history:
        return [meant]
    if names_its_subject(question):
        return list(dict.fromkeys([meant, f"{history[-1]} {question}"]))
    about = f"{subject(_since_anchor(history)[0]).replace(',', '')} {question}".strip()
    first = [about, meant] if meant == question else [meant, about]
    return list(dict.fromkeys([*first, question, f"{history[-1]} {question}"]))


def senses(question: str, meant: str, history: Sequence[str]) -> list[str]:
    """What a follow-up may say, by itself, each as a question; only `meant` for one that names its own subject.

    They are the question with its references filled in, as typed, and the first of its `readings`; some may be alike.
    """
    if not history or names_its_subject(question):
        return [meant]
    return [meant, question, readings(question, meant, history)[0]]


_QUESTION_WORD = re.compile(r"^\W*(?:how|what|which|who|whom|whose|where|when|why)\b\s*", re.I)
_AND = re.compile(r"^\W*(?:and|but|or|so|then|also)\b\W*", re.I)
# A name: words with a capital or a digit ("CFD Python", "SP 800-207"), and the function words between them.
_NAME_WORD = r"[\w.+/-]*[A-Z\d][\w.+/-]*"
_NAME = re.compile(rf"(?<![\w.+/-]){_NAME_WORD}(?:\s+(?:(?:of|and|the|for|in)\s+)?{_NAME_WORD})*")
# What separates noun phrases.
_BETWEEN = re.compile(
    r"[,;:()]|\b(?:the|an?|of|in|on|at|for|from|to|with|by|under|into|through|about|between|and|or|as|that|which|than"
    r"|using|is|are|was|were|be|been|do|does|did|has|have|had|can|could|will|would|one|someone|there)\b",
    re.I,
)


def subject(question: str) -> str:
    """What a question is about, in its own words: its names, or else its last two noun phrases, or "".

    An English question begins with what it asks for; its subject comes after that.

    >>> subject("How many core lessons make up the CFD Python learning module?")
    'CFD Python'
    >>> subject("Which criterion is used for trees in the parsimony method?")
    'trees, parsimony method'
    """
    whole = question.strip().rstrip("?!. ")
    asked = _QUESTION_WORD.sub("", whole)
    if asked == whole and asked.partition(" ")[0][1:].islower():
        asked = asked[:1].lower() + asked[1:]  # the first word of a sentence is no name
    names = list(dict.fromkeys(_NAME.findall(asked)))
    if any(sum(map(str.isalpha, name)) > 1 for name in names):  # "R" alone or a year does not identify a subject
        return " ".join(names)
    phrases = [" ".join(phrase.split()) for phrase in _BETWEEN.split(asked)]
    return ", ".join([phrase for phrase in phrases if tokenize(phrase)][-2:])


# What refers to something said before. "It" in "is it safer to buy" and "that" in "the loss that falls" do not.
_BACK = re.compile(
    r"\b(?:it|its|itself|they|them|theirs?)\b"
    r"|\b(?:this|that|these|those)\b(?=\s*(?:[?.!,]|$"
    r"|(?:is|are|was|were|do|does|did|can|could|will|would|has|have|mean|work|happen|affect|apply|in|for|on|too|further"
    r"|more|again)\b))",
    re.I,
)
_EMPTY_IT = re.compile(r"\bit(?:'s)?\s+(?:(?:is|be|was)\s+)?(?:\w+\s+){0,2}(?:to|that|if|when)\b", re.I)
# What divides clauses
_CLAUSE = re.compile(r"[,;:]|\w\s+(?:if|when|while|that|because|and|or)\b", re.I)
# A reference in a later clause than so many content words is to one of them.
_BEFORE_REFERENCE = 1
# Words in a noun phrase; a longer one is no phrase but what the rules of `subject` could not take apart.
_LONGEST_PHRASE = 4
# Questions with fewer content words need an earlier one to be understood.
_FEW_WORDS = 3


def is_followup(question: str) -> bool:
    """Whether a question needs an earlier one to be understood: it refers back, or has hardly any content words.

    One that names its own subject, and refers to nothing before that, needs none.
    """
    if _ordinal_reference(question) is not None or _reference(question) is not None:
        return True
    return len(_content(question)) < _FEW_WORDS and not _names(question)


def names_its_subject(question: str) -> bool:
    """Whether a question has a name in it ("BERT", "the Aletsch glacier") and needs no earlier one."""
    return bool(_names(question)) and not is_followup(question)


_FRAGMENT = re.compile(r"^\W*(?:no|not|nor|neither|never|except)\b(?!.*\b(?:mean|meant)\b)", re.I)
_ASKS = re.compile(
    r"\b(?:how|what|which|who|whose|where|when|why|is|are|was|were|does|do|did|can|could|tell|explain)\b", re.I
)


def is_unclear(question: str) -> bool:
    """Whether nobody could tell what a question asks: "Not payment", "???"."""
    if not any(map(str.isalnum, question)):
        return True
    return bool(_FRAGMENT.match(question)) and len(_content(question)) < _FEW_WORDS and not _ASKS.search(question)


def _content(question: str) -> set[str]:
    """The content words of a question, lower case."""
    return {word for word in re.findall(r"\w+", question.lower()) if word not in STOP_WORDS}


def _names(question: str) -> list[str]:
    """The names in a question, without the capital that begins a sentence."""
    found = []
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
            found.append(" ".join(words))
    return list(dict.fromkeys(found))


def _reference(question: str) -> re.Match[str] | None:
    """The first word that refers to something before the question."""
    for match in _BACK.finditer(question):
        before = question[: match.start()]
        is_within = len(_content(before)) > _BEFORE_REFERENCE and _CLAUSE.search(before)
        if is_within or _EMPTY_IT.match(question, match.start()):
            continue
        return match
    return None


def _topic(asked: Sequence[str], last: Answer | None = None) -> list[str]:
    """What a conversation is about: the names since the last question that stands alone, else what that one wants
    defined, else the name of the paper that was shown, else the names before, else the subject of that question."""
    since = _since_anchor(asked)
    shown = _name_of(last.citations[0].paper) if last and last.citations else ""
    found = _last_names(since) or list(filter(None, [asked_term(since[0]) or shown])) or _last_names(asked)
    return found or [part for part in subject(since[0]).split(", ") if 0 < len(part.split()) <= _LONGEST_PHRASE]


def _last_names(asked: Sequence[str]) -> list[str]:
    """The names in the last of these questions that has any."""
    return next((names for question in reversed(asked) if (names := _names(question))), [])


def _name_of(paper: Paper) -> str:
    """What a paper names in its title before a colon: "Mikrokosmos: a ..."; "" for a title without such a name.

    More than two words are rather a title: "How Folio Answers: ...".
    """
    lead, colon, _ = paper.title.partition(": ")
    return lead if colon and len(lead.split()) <= 2 else ""


def _since_anchor(asked: Sequence[str]) -> Sequence[str]:
    """The questions from the last one on that stands alone; the first did, to whoever asked it."""
    alone = [place for place, question in enumerate(asked) if not is_followup(question)]
    return asked[alone[-1] if alone else 0 :]


_POSSESSIVES = frozenset({"its", "their", "theirs"})
_PLURALS = frozenset({"they", "them", "these", "those"})


def _fill_in(question: str, about: Sequence[str]) -> str:
    """A question with what it is about in place of its reference, or behind it."""
    subjects = " and ".join(about)
    rest = _AND.sub("", question.strip()) or question.strip()
    match = _reference(rest)
    word = match.group().lower() if match else ""
    if match and (len(about) == 1 or word in _PLURALS):
        of = ("’" if subjects.endswith("s") else "’s") if word in _POSSESSIVES else ""
        whole = f"{rest[: match.start()]}{subjects}{of}{rest[match.end() :]}"
        return whole[:1].upper() + whole[1:]
    return _behind(rest, subjects)


def _behind(question: str, subjects: str) -> str:
    """A question with what it is about behind it."""
    body, end = re.fullmatch(r"(.*?)\s*([?.!]*)", question, re.S).groups()  # type: ignore[union-attr]
    return f"{body[:1].upper()}{body[1:]}, for {subjects}{end}"


_ELLIPSIS = re.compile(
    r"^\W*(?:(?:and|but|or|so|then|also)\b\W*)?(?:(?:what|how)\s+about\b)?\s*(?:(?:for|in|of|with|on|at|to|about|by)\s+)?"
    r"(?:the\s+)?(?P<name>[^?.!]+?)\W*$",
    re.I,
)


def _swap_name(question: str, last: str) -> str:
    """The last question with its first name replaced by the one that the follow-up gives: "And for GPT-2?"; else ""."""
    match = _ELLIPSIS.match(question)
    if not match or match.start("name") == 0 or _NAME.fullmatch(match["name"]) is None:
        return ""
    names = _names(last)
    return last.replace(names[0], match["name"]) if names and match["name"] not in names else ""


_BARE = re.compile(r"(?:how(?: \w+)?|what|which|who|whom|whose|where|when|why)", re.I)


def _asked_otherwise(question: str, last: str) -> str:
    """The last question with the question word that the follow-up consists of: "Why?", "How often?"; else ""."""
    bare = " ".join(_AND.sub("", question.strip()).rstrip("?!. ").split())
    if not _BARE.fullmatch(bare):
        return ""
    rest = _QUESTION_WORD.sub("", last.strip()).rstrip("?!. ")
    if " " in bare and last.casefold().startswith("how "):
        rest = rest.partition(" ")[2]  # "How long is it?" and "How thick?"
    return f"{bare[:1].upper()}{bare[1:]} {rest}?"


# What asks for more of the last answer, and names nothing
_MORE = frozenset(
    "continue detail details elaborate example examples expand explain further give go keep more please say show tell"
    " want".split()
)


def asks_for_more(question: str) -> bool:
    """Whether a question asks for more of the last answer, as "tell me more" and "explain that further" do."""
    words = _content(question)
    return bool(words) and words <= _MORE and not _QUESTION_WORD.match(question)


_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_WHICH = re.compile(
    rf"\b(?:the\s+)?(?:(?P<word>{'|'.join(_ORDINALS)}|last)|(?P<digits>\d{{1,2}})(?:st|nd|rd|th))\s+"
    r"(?:(?P<one>one|of\s+(?:them|these|those))|point|item|sentence|answer|method|option|step|reason|source|quote)\b"
    r"|(?:\b(?:number|point|item|sentence|no\.)\s*|#)(?P<number>\d{1,2})\b",
    re.I,
)
# What introduces a list in a sentence, and what separates its items.
_LISTED = re.compile(
    r"(?::|\b(?:include[sd]?|including|such as|namely|(?:consists?|made(?: up)?|composed) of|comprises?))\s+"
    r"(?!.*:\s)",
    re.S,
)
_SEPARATOR = re.compile(
    r"[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*[•▪‣]\s*|\s*\(?\b(?:[ivx]{1,4}|\d{1,2}|[a-h])\)\s+"
)
_BULLET = re.compile(r"\s*(?:[•▪‣*–-]|\(?\d{1,2}[.)])\s+")
_REFERENCES = re.compile(r"\s*\[[\d,; –-]+\]")
_LONGEST_ITEM = 12  # words


def _ordinal_reference(question: str) -> re.Match[str] | None:
    """The reference to an item of the last answer: "the second one", or "step 2" with hardly any other word.

    "The first step of key generation in ML-DSA" is no such reference: it can be understood by itself.
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
    items, listed = _items(last)
    word = (match["word"] or "").lower()
    place = len(items) if word == "last" else int(match["digits"] or match["number"] or _ORDINALS.index(word) + 1)
    if not 1 <= place <= len(items):
        return ""
    item = items[place - 1]
    rest = question[match.end() :]
    # A whole statement fits after a word such as "explain", but not in the middle of a question.
    if listed:
        return f"{question[: match.start()]}{item}{rest}"
    return f"{question[: match.start()]}“{item}”{rest.rstrip(' .')}" if not tokenize(rest) else f"{question} “{item}”"


def _items(answer: Answer) -> tuple[list[str], bool]:
    """The items of the first list in an answer, else what its statements say first; and whether they are list items."""
    texts = [sentence.text for sentence in answer.sentences]
    for text in texts:
        sentences = [text[start:end] for start, end in sentence_spans(text)]
        bullets = [_BULLET.sub("", sentence).rstrip(" .,;") for sentence in sentences if _BULLET.match(sentence)]
        if len(bullets) > 1:
            return bullets, True
        for sentence in sentences:
            if items := _listed(sentence):
                return items, True
    return [text[slice(*sentence_spans(text)[0])] for text in texts], False


def _listed(sentence: str) -> list[str]:
    """The items that a sentence lists, without the numbers of their references; [] if it lists none."""
    listed = _LISTED.search(sentence)
    items = (
        [_REFERENCES.sub("", item).strip(" .\n") for item in _SEPARATOR.split(sentence[listed.end() :])]
        if listed
        else []
    )
    items = [item for item in items if item]
    return items if len(items) > 1 and all(len(item.split()) <= _LONGEST_ITEM for item in items) else []
