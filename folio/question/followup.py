"""Follow-up questions without a model: which questions need earlier ones, what they mean, and how to search them.

Rules resolve the references; search (folio/search/retriever.py) does not rely on them alone. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from folio.answer_types import Answer
from folio.papers.model import Paper
from folio.text import STOP_WORDS, one_line, tokenize


class NotUnderstoodError(Exception):
    """It is not clear what a follow-up asks. The message asks back."""


def standalone(question: str, history: Sequence[Answer]) -> str:
    """A follow-up with its references filled in; a question without references is returned unchanged.

    "Explain the second one" is about the second item or sentence of the last answer. "And for GPT-2?" repeats the last
    question with another name. Other follow-ups get the paper of the last shown answer, in place of "it" or "the
    authors" or at the end: "Why, for Mikrokosmos?" Before any answer they get the names of the earlier questions. They
    get nothing more, because the rest of the earlier question would find its old answer again. Raises
    NotUnderstoodError.
    """
    if not history:
        return question
    if resolved := _resolve_ordinal(question, history[-1]):
        return resolved
    if not any(map(str.isalnum, question)):  # "???"
        shown = one_line(question)
        raise NotUnderstoodError(f"It is not clear what “{shown}” asks. Please ask it as a whole question.")
    if swapped := with_other_name(question, history):
        return swapped
    papers = papers_of(question, history) if is_followup(question) else []
    return about(question, papers) if papers else filled_in(question, [turn.question for turn in history])


def papers_of(question: str, history: Sequence[Answer]) -> list[Paper]:
    """The paper that "it" and "the authors" mean: that of the last shown answer; none before any.

    Of several papers it is the first that the last question named, or else the first that is cited; "them" are all
    that it named.
    """
    last = next((turn for turn in reversed(history) if turn.citations), None)
    if last is None:
        return []
    papers = list(dict.fromkeys(quote.paper for quote in last.citations))
    asked = last.standalone_question.casefold()

    def is_named(paper: Paper) -> bool:
        names = (short_name(paper), *(author.family for author in paper.metadata.authors.value))
        return any(re.search(rf"\b{re.escape(name.casefold())}\b", asked) for name in names if name)

    reference = _reference(question)
    is_plural = reference is not None and reference.group().lower() in _PLURALS
    return list(filter(is_named, papers))[: None if is_plural else 1] or papers[:1]


def short_name(paper: Paper) -> str:
    """What a question calls a paper: "Zab" for "Zab: High-performance broadcast", else its title or its file."""
    title = one_line(paper.title)
    lead = re.split(r":\s|\s[-–—]\s|\?\s", title, maxsplit=1)[0]
    return (lead if len(lead.split()) <= _LONGEST_PHRASE else title) or paper.key


def about(question: str, papers: Sequence[Paper]) -> str:
    """A question that refers back, about these papers: "Who wrote it?" becomes "Who wrote Zab?"."""
    names = (_ARTICLE.sub(lambda article: article[0].lower(), short_name(paper)) for paper in papers)
    return _fill_in(question, list(names))


def stays(question: str, *, names_a_paper: bool, has_new_topic: bool) -> bool:
    """Whether a question after an answer is about the paper of that answer; else it says itself what it is about.

    names_a_paper: whether it names or describes a paper of the library. has_new_topic: whether it has a word that the
    last paper does not use, and few others do.
    """
    if _ordinal_reference(question) is not None:
        return True
    content = _content(question) - {"s"}
    is_long, is_short = len(content) >= _LONG, len(content) < _FEW_WORDS
    if reference := _reference(question):
        word = reference.group().lower()
        # "When did they write the little manual of API design", but not "How does it differ from Pastry"
        is_person = word in _PERSONS | _PLURALS | {"their", "theirs"} or _WRITERS.search(word) is not None
        return not (names_a_paper and (is_long or is_person)) and not (has_new_topic and is_long and is_person)
    leans = _HINT.search(question) is not None or (not is_long and _BACK.search(question) is not None)
    if names_a_paper or (is_long and not leans):
        return False
    if is_short and content <= _OF_ANY_PAPER:
        return True
    if _DEFINES.match(question) and not _names(question):
        return False
    is_definite = _DEFINITE.search(question) is not None
    if has_new_topic and (is_long or not (leans or (is_short and is_definite))):
        return is_short and not _ASKS.search(question)  # "Ablations?"
    return is_short or is_definite or leans


def filled_in(question: str, before: Sequence[str]) -> str:
    """A question with its reference to earlier questions filled in ("How large is it?"); unchanged without one."""
    topic = _topic(before) if before and is_followup(question) else []
    return _fill_in(question, topic) if topic else question


def readings(question: str, meant: str, history: Sequence[str], *, in_paper: bool = False) -> list[str]:
    """The readings of a question to search with; the first is the most explicit, for the reranker.

    meant: the question with its references filled in. history: the earlier questions. The readings are `meant`, the
    question as typed, and the question after the subject of the last standalone question, after the last question, and
    after the last two. The first is `meant`, or the one with the subject if nothing was filled in. A question that
    names its own subject may have left the earlier one: its only readings are `meant` and the question after the last
    one, so that an earlier subject never outweighs its own. in_paper: only the paper of the last answer is searched, in
    which its name, as in `meant`, says nothing: the reading with the subject is the first.
    """
    if not history:
        return [meant]
    in_context = [" ".join([*history[-count:], question]) for count in (1, 2)]
    if names_its_subject(question) and not in_paper:
        return list(dict.fromkeys([meant, in_context[0]]))
    with_subject = f"{subject(_anchor(history)).replace(',', '')} {question}".strip()
    first = [with_subject, meant] if in_paper or meant == question else [meant, with_subject]
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
_ARTICLE = re.compile(r"^The ")  # of a title, in the middle of a question
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
    r"|\b(?:the|these|those) (?:authors?|researchers|writers?)(?! (?:of|who|that)\b)(?P<owned>['’]s?)?(?![\w'’])"
    r"|\b(?:this|that|the) (?:paper|study|article|document|report|publication|manuscript|preprint)\b"
    r"(?! (?:of|on|by|about|that|which) \w)"
    r"|\bthis work\b(?=\W*$)"
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
_BEFORE_ASKED = 4  # the same for _ASKED_OF
_LONGEST_PHRASE = 4  # words; `subject` could not split a longer one
_FEW_WORDS = 3  # a question with fewer content words needs an earlier question
_LONG = 5  # content words; a question with as many says by itself what it is about
# "What is coin age?": it asks for a thing by its own name
_DEFINES = re.compile(
    _JOINED + r"(?:(?:what|who)(?:['’]?s|\s+(?:is|are))|define|explain what)\s+(?!(?:the|your|its|this|that|these)\b)",
    re.I,
)
# What is there, or happened, in one paper: "how many students took part"
_DEFINITE = re.compile(r"\b(?:the|how (?:many|much|long|often|large|big|old|fast)|did|was|were)\b", re.I)
_OF_ANY_PAPER = frozenset(
    "abstract aim aims approach author authors background baseline baselines code conclusion conclusions contribution"
    " contributions data dataset datasets evaluation experiment experiments finding findings funding future goal goals"
    " idea implementation limitation limitations limits main method methodology methods motivation new novelty problem"
    " references related result results sample setup size summary used weaknesses work year".split()
)


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
        if " " in match.group():  # "the authors", "this study"
            return match
        before = question[: match.start()]
        earlier = _EARLIER_QUESTION.search(before)
        words = len(_content(before))
        is_within = words > _BEFORE_REFERENCE and (words > _BEFORE_ASKED or not _ASKED_OF.match(before))
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
_WRITERS = re.compile(r"authors?|researchers|writers?")
_ACTORS = frozenset({"they", "he", "she"})
# "They" are the authors in "what do they propose" and "who are they", the paper's things in "how are they verified"
_ACTS = re.compile(r"\b(?:do|did|have|had|could|can|would|will|should|who are|who were)\s+$", re.I)
_MORE = re.compile(
    r"^(?:please\s+)?(?:tell me|say|explain|give me|i want|show me)\b.*\b(?:more|details?|further)$", re.I
)


def _fill_in(question: str, names: Sequence[str]) -> str:
    """A question with these names in place of its reference, or at the end."""
    subjects = " and ".join(names)
    rest = _AND.sub("", question.strip()) or question.strip()
    match = _reference(rest)
    word = match.group().lower() if match else ""
    if match and (len(names) == 1 or word in _PLURALS):
        is_possessive = word in _POSSESSIVES and (word != "her" or re.match(r"\s+\w", rest[match.end() :]))
        ending = "’" if subjects.endswith("s") and not subjects.endswith("ss") else "’s"
        shown = f"{subjects}{ending if is_possessive else ''}"
        if _WRITERS.search(word) or (word in _ACTORS and _ACTS.search(rest[: match.start()])):
            shown = f"{subjects}{ending} authors{match['owned']}" if match["owned"] else f"the authors of {subjects}"
        whole = f"{rest[: match.start()]}{shown}{rest[match.end() :]}"
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


def with_other_name(question: str, history: Sequence[Answer], is_name: Callable[[str], bool] | None = None) -> str:
    """The last question with its only name replaced by the follow-up's ("And for GPT-2?"); "" if that is impossible.

    is_name: whether words are the name of a paper, whatever their case.
    """
    match = _ELLIPSIS.match(question)
    if not match or match.start("name") == 0:
        return ""
    if _NAME.fullmatch(match["name"]) is None and not (is_name and is_name(match["name"])):
        return ""
    last, papers = history[-1].standalone_question, papers_of(question, history[-1:])
    names = _names(last)
    if papers and not names:  # "how does zab order messages"
        known = re.search(rf"\b{re.escape(short_name(papers[0]))}\b", last, re.I)
        names = [known.group()] if known else []
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
