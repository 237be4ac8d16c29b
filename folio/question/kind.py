"""The kind of answer that a question asks for, by its words: a number, a definition, a paper's contributions. Pure.

The classes follow Li and Roth (2002, "Learning Question Classifiers", https://aclanthology.org/C02-1150/), with two for
papers: questions about a paper as a whole, and comparisons. For English; without a matching rule the kind is "other".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from folio.grounding.quantities import quantities
from folio.question.parts import compared_things
from folio.text import STOP_WORDS, one_line, tokenize

QuestionKind = Literal[
    "greeting", "thanks", "ok", "wrong", "again", "shorter", "translated", "more",
    "paper", "comparison", "number", "date", "person", "place", "definition", "why", "list",
    "how", "other",
]  # fmt: skip
# The subject of a question about a paper as a whole
Aspect = Literal["", "about", "summary", "contributions", "method", "results", "limitations", "conclusion"]


@dataclass(frozen=True, slots=True)
class QuestionType:
    """The kind of a question, and its aspect of a paper."""

    kind: QuestionKind
    aspect: Aspect = ""  # of a question about a paper as a whole


# Search tokens of question words that no answer repeats
ASKING = frozenset(tokenize("many much"))

_SIZES = "many|much|large|big|small|long|short|wide|high|low|tall|deep|thick|heavy|fast|slow|far|old|hot|cold"
# Nouns whose value is always a number; not "level" or "error", which often have none
_MEASURES = """
    accuracy age altitude amount amplitude angle area average bandwidth budget capacity coefficient concentration
    correlation cost count depth deviation diameter distance dosage dose duration f1 fee fraction frequency half-life
    height incidence latency length magnitude mass maximum median minimum mortality number p-value percent percentage
    perplexity population precision pressure prevalence price probability proportion quantile radius rate ratio
    recall salary score share size specificity speed speedup sum temperature thickness threshold throughput total
    value variance velocity voltage volume wavelength weight width year
""".split()
# A question asks for the measure only if it ends there or one of these follows: a "learning rate schedule" is no rate.
_AFTER_MEASURE = """
    a an and are at be between by can could did do does for from had has have in is it must of on or per should that the
    to under was were when will with would
""".split()


def _plural(noun: str) -> str:
    """A pattern for a noun and its plural."""
    return f"{noun[:-1]}(?:y|ies)" if noun.endswith("y") else f"{noun}s?"


_NUMBER = re.compile(
    rf"how (?:{_SIZES})\b"
    r"|what (?:do|does|did) [^?,;]{1,80}? (?:cost|weigh)\b"
    r"|(?:what|which)(?: (?:is|was|are|were))?(?: (?:the|a|an|its|their))?(?: [\w-]+){0,3}?"
    rf" (?P<measure>{'|'.join(map(_plural, _MEASURES))})(?=[?.,;]|$| (?:{'|'.join(_AFTER_MEASURE)})\b)",
    re.I,
)
# Keywords that end in a measure: "GFS chunk size"
_KEYWORDS = re.compile(
    rf"(?!.*\b(?:how|what|wh[a-z]+|is|are|do|does)\b)[\w .+/-]* (?:{'|'.join(map(_plural, _MEASURES))})", re.I
)
_ASKS = re.compile(r"\b(?:how|what|when|where|which|who|whom|whose|why)\b", re.I)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

_POLITE = r"(?:there|folio|everyone|all|again|so much|very much|a lot|for (?:your|the) \w+|you|that)"
_GREETING = re.compile(
    rf"(?:hello|hi|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|how are you|what(?:'s| is) up)"
    rf"(?:[\s,]+{_POLITE})*",
    re.I,
)
_GREETED = re.compile(rf"(?:{_GREETING.pattern})\s*[,.!]\s+", re.I)
_THANKS = re.compile(
    rf"(?:thanks|thank you|thx|cheers|many thanks|great|perfect|bye|goodbye|good ?night|see you)(?:[\s,]+{_POLITE}"
    r"|[\s,!]+(?:thanks|thank you|bye|goodbye))*",
    re.I,
)

# Remarks on the last answer and requests about it. One word is of the first list, the others of any list of the row.
_REMARK_WORDS: tuple[tuple[QuestionKind, str, str], ...] = (
    ("translated", "arabic chinese czech danish dutch english finnish french german greek hebrew hindi italian japanese"
     " korean norwegian persian polish portuguese russian spanish swedish turkish ukrainian deutsch français francais"
     " español espanol italiano português nederlands translate translation traduce traduis übersetze",
     "al au auf bitte en por favor wohl"),
    ("wrong", "wrong incorrect false mistaken nonsense useless bad isn't doesn't didn't not",
     "asked don't helpful make no question right sense true correct wanted"),
    ("shorter", "short shorter brief briefer briefly concise concisely shorten condense fewer",
     "bit keep make summarise summarize words"),
    ("more", "sources source passages papers references citations evidence quotes places",
     "additional another any else find further more other others"),
    ("again", "again repeat pardon once", "more same sorry"),
    ("ok", "ok okay k fine good great nice cool perfect interesting understood got hm hmm ah aha oh yes yeah yep no"
     " sure alright right true correct agreed wow makes see", "now sense know thanks well"),
)  # fmt: skip
_SMALL_WORDS = frozenset(
    "a all am an and answer are be can could do for from get give have i in it just let let's me much my of one only"
    " please put say sentence sentences show so tell text that that's the there these this those to very was we with"
    " you your is".split()
)
_REMARKS = tuple((kind, frozenset(own.split()), frozenset(others.split())) for kind, own, others in _REMARK_WORDS)
_LONGEST_REMARK = 8  # words
_MORE = frozenset("more other others another additional else further source sources".split())

_WORK = r"(?:paper|article|study|work|authors?|researchers|report|thesis|publication)"
_BEST = r"(?:main|key|major|central|principal|most important|primary|core|overall)"
# The first matching pattern gives the aspect.
_ASPECTS: tuple[tuple[Aspect, str], ...] = (
    ("contributions", r"\bcontributions?\b(?! (?:from|by|to) )|\bwhat (?:is|was|are) (?:new|novel)\b|\bnovelty of\b"),
    ("limitations", r"\b(?:limitations?|shortcomings?|drawbacks?|weakness(?:es)?|future work)\b"),
    ("conclusion", r"\bconclusions? (?:of|in|does|do|did|from|drawn)\b"),
    ("conclusion", r"\b(?:does|do|did) (?:the |this |these )?[\w\s-]{1,60} conclude\b"),
    (
        "conclusion",
        rf"\b{_WORK} conclude[sd]?\b|\b(?:is|are|was|were) (?:the |its |their )?(?:{_BEST} )?conclusions?\b",
    ),
    ("results", rf"\b{_BEST} (?:results?|findings?|outcomes?)\b|\bresults? of (?:the|this) {_WORK}\b"),
    ("results", rf"\bwhat (?:does|do|did) (?:the|this|these|they) ?(?:{_WORK})? (?:find|show|discover)\b"),
    ("method", rf"\b(?:methods?|methodology|approach)\b.{{0,40}}\b(?:the|this) {_WORK}\b"),
    ("method", rf"\bhow (?:does|do|did) (?:the|this) {_WORK} (?:do|work|proceed|go about)"),
    ("about", r"\bwhat (?:is|was|are) (?:[^?]{1,80}? )?(?:all )?about(?:,? in (?:short|brief))?\W*$"),
    (
        "summary",
        r"\bsummar(?:y|i[sz]e|ies)\b|\btl;?dr\b|\b(?:overview|gist|synopsis) of\b|\bin a nutshell\b|\bsum up\b",
    ),
    (
        "about",
        rf"\bwhat (?:does|do|did) (?:the|this|that)(?: [\w-]+){{0,4}}? {_WORK}"
        r" (?:say|do|argue|discuss|cover|present|propose|describe)\b(?!\s+(?:about|of|on|that)\b)",
    ),
    ("about", rf"\b{_BEST} (?:ideas?|points?|message|topic|goal|purpose|aim|argument|takeaways?)\b"),
    ("about", r"\bwhat problems? (?:does|do|did) .{1,60} (?:solve|address|tackle)"),
)
_DATE = re.compile(
    r"\bwhen\s+(?:is|was|were|are|did|does|do|has|had|will)\b|\b(?:what|which) (?:date|day|month|year)s?\b", re.I
)
_PERSON = re.compile(
    r"^\W*(?:by |to |from |with )?(?:who|whom|whose)\b"
    r"|\b(?:what|which) (?:person|people|author|researcher|scientist)s?\b",
    re.I,
)
_PLACE = re.compile(
    r"\bwhere (?:is|was|were|are|did|does|do|can|has)\b"
    r"|\b(?:what|which) (?:city|cities|country|countries|place|region|town|village|continent)\b",
    re.I,
)
# A term whose definition is asked for, and what may follow it: "blowup" for a memory allocator
_TERM = r"[\"'“‘]?(?P<term>\w[\w./+’'()-]*(?: (?!of\b|between\b)[\w./+’'()-]+){0,4}?)[\"'”’]?"
_WHERE = r"(?:,? (?:here|(?:in|for|as|according to|within|under|on|when|from|of an?) [^?]+|\([^)]*\)))?"
_WHAT_IS = r"(?:^|[,;:] )\W*(?:what|who)(?:[’']?s| is| are| exactly is| is exactly)"
_DEFINITIONS = tuple(
    re.compile(rf"{form}\W*$", re.I)
    for form in (
        rf"\bmeant by (?:an? |the )?{_TERM}{_WHERE}",
        rf"\bwhat (?:do|does|did) (?:an? |the )?{_TERM} (?:mean|stand for|refer to|denote){_WHERE}",
        rf"\bwhat (?:do|does|did) .{{1,80}}? mean by (?:an? |the )?{_TERM}{_WHERE}",
        rf"\bwhat (?:do|does|did) .{{1,120}}? say (?:an? |the )?{_TERM} (?:is|are|means?)",
        rf"\b(?:define|definition of|meaning of|explain what) (?:an? |the )?{_TERM}(?: (?:is|are|means?))?{_WHERE}",
        rf"{_WHAT_IS} (?:an? )?{_TERM}{_WHERE}",
        rf"{_WHAT_IS} (?P<term>[\w-]+ of [\w-]+)",  # proof of work
        rf"{_WHAT_IS} the {_TERM}",  # what follows would say of what it is a property
        rf"\bhow (?:is|are) (?:an? |the )?{_TERM} defined{_WHERE}",
        rf"^\W*{_TERM} (?:meaning|definition){_WHERE}",
    )
)
_LONGEST_FOR_TERM = 300  # characters of a question that may ask for a definition
# Words that no term has, because they ask for a property of something, and what no term is: "What is stored in ...?"
_NO_TERM = re.compile(
    r"^the\b|^(?:papers?|article|study|authors?|an?|\w+ed|shown|done|known|lacking|missing)(?: (?:by|off|out|up)\b|$)"
    r"|\b(?:you|it|its|they|their|this|that|these|those|name|used|main|most|best|key|difference|reasons?|goals?|aims?"
    r"|purpose|point|advantages?|disadvantages?|problems?|issues?|number|value|size|new|good|wrong|results?|effects?"
    r"|role|about|still)\b|(?<![\w-])to(?![\w-])|[’']s ",
    re.I,
)
_WHY = re.compile(r"\b(?:why|for what reasons?|what (?:is|was|are|were) the reasons?|what causes?)\b", re.I)
_LIST = re.compile(
    r"^\W*(?:list|name|enumerate)\b|\bwhat are (?:the|all|some)\b"
    r"|\b(?:what|which) (?:kinds|types|sorts|steps|stages|phases)\b"
    r"|\bwhich (?:[\w-]+ ){0,2}[\w-]+s (?:are|were|do|does|did|have|has)\b",
    re.I,
)
_HOW = re.compile(r"\bhow\b", re.I)


def question_type(question: str) -> QuestionType:
    """The kind of a question; "other" if no rule matches.

    >>> question_type("What are the main contributions of LLaMA?")
    QuestionType(kind='paper', aspect='contributions')
    """
    plain = one_line(question)
    bare = plain.strip(" .!?,;:)(")
    if _GREETING.fullmatch(bare):
        return QuestionType("greeting")
    if _THANKS.fullmatch(bare):
        return QuestionType("thanks")
    if remark := _remark(bare, is_question="?" in plain):
        return QuestionType(remark)
    plain = _GREETED.sub("", plain)
    if compared_things(plain):
        return QuestionType("comparison")
    if aspect := next((aspect for aspect, words in _ASPECTS if re.search(words, plain, re.I)), None):
        return QuestionType("paper", aspect)
    rules: tuple[tuple[QuestionKind, bool], ...] = (
        ("date", bool(_DATE.search(plain)) and not asks_for_number(plain.replace("year", "date"))),
        ("number", asks_for_number(plain) or bool(_KEYWORDS.fullmatch(bare))),
        ("person", bool(_PERSON.search(plain))),
        ("place", bool(_PLACE.search(plain))),
        ("why", bool(_WHY.search(plain))),
        ("definition", bool(asked_term(plain))),
        ("list", bool(_LIST.search(plain))),
        ("how", bool(_HOW.search(plain))),
    )
    return QuestionType(next((kind for kind, holds in rules if holds), "other"))


def asked_term(question: str) -> str:
    """The term whose definition a question asks for; "" for none.

    >>> asked_term("what is a grace period in memory reclamation?"), asked_term("What is the aim of the paper?")
    ('grace period', '')
    """
    plain = one_line(question)[:_LONGEST_FOR_TERM]
    terms = (match["term"].strip("\"'“‘”’().- ") for form in _DEFINITIONS if (match := form.search(plain)))
    return next((term for term in terms if not (_NO_TERM.search(term) or STOP_WORDS.issuperset(tokenize(term)))), "")


def _remark(text: str, *, is_question: bool) -> QuestionKind | None:
    """The kind of a remark on the last answer or of a request about it: "ok", "in German, please"; None for others."""
    plain = re.sub(r"\bone sentence\b", "short", text.casefold().replace("’", "'"))
    words = frozenset(re.findall(r"[\w']+", plain))
    if len(plain.split()) > _LONGEST_REMARK:
        return None
    kinds = (kind for kind, own, others in _REMARKS if own & words and words <= own | others | _SMALL_WORDS)
    kind = next(kinds, None)
    if kind == "more" and not words & _MORE:  # "show me all papers"
        return None
    return None if is_question and kind in ("ok", "wrong") else kind  # "Is that true?"


def asks_for_number(question: str) -> bool:
    """Whether a question asks for a number and nothing else.

    >>> asks_for_number("What top-1 accuracy does it reach?"), asks_for_number("What learning rate schedule is used?")
    (True, False)
    """
    return _number_match(question) is not None


def asked_measure(question: str) -> str:
    """The measure that a question asks for: "rate" for "What learning rate"; "" for "how large"."""
    match = _number_match(question)
    return match["measure"] or "" if match else ""


def _number_match(question: str) -> re.Match[str] | None:
    plain = one_line(question)
    asks = list(_ASKS.finditer(plain))
    return _NUMBER.match(plain, asks[0].start()) if len(asks) == 1 else None


def gives_number(text: str, question: str) -> bool:
    """Whether a text counts or measures something. A year counts only if the question mentions years."""
    years = re.search(r"\byears?\b", question, re.I)
    numbers = (number.written for number in quantities(text, units=False) if not number.is_reference)
    return any(bool(years) or not _YEAR.fullmatch(number) for number in numbers)
