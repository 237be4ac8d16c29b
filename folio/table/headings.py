"""What a column asks of a paper. The headings that tables of papers usually have are known here, and only here.

"Method" or "Limits" shares hardly a word with its answer, so search alone finds other passages. Such a heading is
answered by a sentence with the words that authors announce it with, from the sections where they do: as in
answer/about.py. Any other heading is a question for the search. LOG.md has what each heading is worth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from folio.answer.about import MOVES, Move, OwnSentence, vector_of
from folio.answer_types import Quote
from folio.protocols import Embedder
from folio.table.cell import Column
from folio.table.paper_words import PaperWords
from folio.text import STOP_WORDS, tokenize


@dataclass(frozen=True)
class Heading:
    """A known heading."""

    names: str  # in lower case, separated by commas
    question: str
    moves: tuple[Move, ...] = ()  # the sentences that answer; of the second only if the first has none
    like: tuple[str, ...] = ()  # such sentences, to compare with; () for the title and the abstract
    # Words that announce the answer wherever it stands, the plainest first; for a heading without moves
    cues: tuple[re.Pattern[str], ...] = ()
    also: str = ""  # other words of questions that ask for nothing but this
    asks: str = ""  # a pattern that such a question must have; "" for none

    @cached_property
    def words(self) -> frozenset[str]:
        """The search tokens of questions that ask for this."""
        return frozenset(tokenize(f"{self.names} {self.also}"))


_NUMBER = (
    r"(?:\d{1,3}(?:,\d{3})+|\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty)"
)
_SUBJECTS = (
    r"(?:participants?|patients?|subjects|volunteers|respondents|students|pupils|learners|teachers|children|infants"
    r"|adults|women|men|people|persons|individuals|users|workers|nurses|families|households|animals|mice|rats|plants"
    r"|trees|samples|specimens|cases|articles|papers|studies|documents|sentences|images|data ?sets|interviews"
    r"|questionnaires|schools|hospitals|questions|examples|observations|records)"
)
SAMPLE = re.compile(
    r"\bn\s?=\s?(?P<n>\d[\d,]*)"
    rf"|(?<!every )(?<!each )(?<!per )\b(?P<count>{_NUMBER})\s+(?:[a-z-]+\s+){{0,3}}?{_SUBJECTS}\b",
    re.I,
)
_SAMPLED = re.compile(
    r"(?=.*\b(?:total|enrol|recruit|inclu|randomi[sz]|participat|took part|survey|interview|sampl|collect|consist"
    r"|compris|assign|allocat|cohort|complet|admit|studied|evaluate|use|analy[sz]e)\w*).*?"
    + SAMPLE.pattern.replace("?P<n>", "?:").replace("?P<count>", "?:"),
    re.I | re.S,
)
_DATA = re.compile(
    r"(?=.*\b(?:data ?sets?|corpus|corpora|data ?bases?|benchmarks?|traces|data)\b)"
    r".*\b(?:us(?:e|es|ed|ing)|collect\w*|obtain\w*|evaluat\w*|consist\w*|download\w*|avail\w*|contain\w*|from|on)\b",
    re.I | re.S,
)
_OUTCOME = re.compile(
    r"\b(?:primary|secondary|main) (?:efficacy |study )?(?:outcomes?|end ?-?points?)\b|\boutcome measures?\b", re.I
)
_POPULATION = re.compile(
    r"\b(?:eligib\w*|inclusion criteria|enrol\w*|recruit\w*|participants were|(?:patients|women|men|children|adults)"
    r" (?:with|aged|who|undergoing)|aged (?:between )?\d)",
    re.I,
)
_TREATED = re.compile(
    r"\b(?:receiv\w*|treated with|randomi[sz]ed to|(?:assigned|allocated) to|administered|(?:was|were) given"
    r"|(?:intervention|treatment|experimental) (?:group|arm))\b",
    re.I,
)
_COMPARED = re.compile(
    r"\b(?:placebo|sham|controls? (?:group|arm)|controls|compared (?:with|to)|versus|vs\.?|usual care|standard (?:care"
    r"|treatment|therapy))\b",
    re.I,
)
_AIM = re.compile(
    r"\b(?:aim(?:s|ed)?|goals?|objectives?|purposes?|(?:we|this \w+|to) (?:sought|seeks?|investigat\w*|examin\w*"
    r"|assess\w*|determin\w*|evaluat\w*|address\w*|explor\w*|compar\w*|stud(?:y|ies|ied)))\b",
    re.I,
)
_CONCLUDES = re.compile(
    r"\b(?:conclu\w+|in (?:summary|conclusion)|(?:we|this \w+|our \w+|results|findings) (?:have |has )?(?:show\w*"
    r"|demonstrat\w*|present\w*|suggest\w*|indicat\w*|confirm\w*|provid\w*|describ\w*|argu\w*))\b",
    re.I,
)
_METHOD = MOVES["method"].says
_RESULT = re.compile(
    rf"{MOVES['result'].says.pattern}|\bresults?\b[^.;]{{0,50}}?\b(?:match|reproduc|replicat)\w*"
    r"|\b(?:could|can|were able to|succe\w+|have) (?:be )?(?:reproduc|replicat)\w*|\bsuccessful \w+ of\b",
    re.I,
)
_FUNDED = (
    re.compile(
        r"\b(?:funded|financed|sponsored) (?:\w+ )?(?:by|through|under|from)\b"
        r"|\bsupport(?:ed|s)?\b[^.;]{0,60}?\b(?:by|from|under)\b"
        r"[^.;]{0,80}?\b(?:grants?|scholarships?|fellowships?|foundations?|council|ministry|programs?|programme|agency"
        r"|horizon|beca|funds?)\b"
        r"|\bgrants? (?:agreement )?(?:no|nos|numbers?)\b"
        r"|\backnowledges? (?:\w+ ){0,3}(?:funding|support) (?:from|by|for)\b",
        re.I | re.S,
    ),
    re.compile(r"\b(?:supported by|funding from|(?:scholar|fellow)ship from|grants?)\b[^.;]{0,60}?[A-Z]{2,}"),
)
# Languages whose names are words or letters count only as they are written here
_LANGUAGES = (
    r"(?:Python|C\+\+|C#|F#|Java|JavaScript|TypeScript|Haskell|OCaml|Standard ML|SAS|MATLAB|Matlab|Octave|Julia|Rust|Go"
    r"|Scala|Kotlin|Swift|Fortran|FORTRAN|Perl|Ruby|PHP|Lua|Lisp|Scheme|Clojure|Racket|Erlang|Elixir|Prolog|Pascal|CUDA"
    r"|Smalltalk|Agda|Coq|Idris|Dafny|Stata|SPSS|Mathematica|Ada|COBOL|Objective-C|R(?![\w&\]])|C(?![\w.\]#+]))"
)
_PROGRAMMED = (
    re.compile(
        r"\b(?:[Ww]ritten|[Ii]mplement\w*|[Cc]oded|[Dd]eveloped|[Pp]rogrammed|[Rr]ewritten)\b[^.;]{0,50}?\bin\b"
        rf"[^.;]{{0,40}}?(?<!\w){_LANGUAGES}",
        re.S,
    ),
    re.compile(
        rf"(?<!\w){_LANGUAGES}\s+(?:and \w+ )?(?:code|implementation|programming|program|scripts?|notebooks?)\b"
        rf"|\b(?:[Uu]s(?:e|ed|ing)|programming in|[Cc]oding|language) {_LANGUAGES}",
        re.S,
    ),
)
_CODE = r"(?:(?:source )?codes?|software|scripts?|implementations?|repository|repositories)"
_RELEASED = (
    re.compile(
        rf"\b{_CODE}\b[^.;]{{0,80}}?"
        r"\b(?:(?:un)?availab\w+|download\w*|obtained|released|open[- ]source\w*|hosted|public)\b"
        r"[^.;]{0,60}(?:https?:|github|gitlab|bitbucket|zenodo|heritage|online|public|upon|request|open)",
        re.I | re.S,
    ),
    re.compile(
        r"(?:https?://)?(?:github|gitlab|bitbucket)\.(?:com|org)/|\bGitHub\b[^.;]{0,40}?\brepositor"
        rf"|{_CODE} ?is ?availab|\b{_CODE}\b[^.;]{{0,80}}?\b(?:availab\w+|download\w*)",
        re.I | re.S,
    ),
)
_NO_CITATION = r"\A(?!.*\[\d)(?!.*\bet al\b)"  # what is said of another work is none of the paper's own
_LIMITED = (
    re.compile(
        rf"{_NO_CITATION}.*(?:\blimitations? (?:of (?:our|this|the (?:present|proposed|current))|is|are|include|to)\b"
        r"|\b(?:our|this|the (?:present|proposed|current)) (?:\w+ ){0,4}(?:is|was|are|were) limited\b"
        r"|\b(?:main|major|another|first|one|possible|potential) (?:limitation|drawback|shortcoming|weakness)\b)",
        re.I | re.S,
    ),
    re.compile(
        rf"{_NO_CITATION}.*(?:\b(?:we|I)\b[^.;,]{{0,20}}?"
        r"\b(?:(?:was|were|are|am) (?:not|un) ?(?:able|successful)|did not|could not|cannot be (?:sure|certain))\b"
        r"|\bour\b[^.;,]{0,30}?\b(?:do|does|did|is|are) not\b"
        r"|\b(?:not implemented yet|not (?:yet )?(?:been )?implemented|needs? improvement"
        r"|out of (?:the )?scope of (?:this|our))\b)",
        re.I | re.S,
    ),
)
_TRIALS = (
    r"(?:experiments?|measurements?|benchmarks?|tests|surveys?|questionnaires?|evaluations?|feedback"
    r"|(?:user|case|field) stud(?:y|ies))"
)
_EVALUATED = re.compile(
    rf"{_NO_CITATION}(?!.*\b(?:not been|has not|how (?:can|do|should) (?:we|I))\b).*(?:"
    r"\b(?:we|I)\b[^.;,]{0,30}?\b(?:evaluated?|tested|assess(?:ed)?|measured?|benchmark(?:ed)?|compared?|surveyed|piloted"
    r"|validated?)\b"
    r"|\bto (?:evaluate|assess|test|measure|validate)\b[^.;]{0,80}?,"
    r"|\b(?:was|were|been) (?:\w+ )?(?:evaluated|tested|assessed|benchmarked|validated|piloted)\b"
    r"|\b(?:we|I)\b[^.;,]{0,30}?\b(?:performed|ran|run|conducted|carr(?:y|ied) out|present|report|collected)\b"
    rf"[^.;]{{0,60}}?\b{_TRIALS}\b"
    r"|\bmeasurements (?:from|on|of)\b[^.;]{0,60}?\b(?:show|indicate|demonstrate|suggest)"
    r"|\b(?:asked|students|learners|participants|attendees|users|respondents)\b[^.;]{0,40}?\b(?:surveys?|questionnaires?"
    r"|feedback)\b|\b(?:empirical|experimental|performance) (?:study|evaluation|comparison)\b)",
    re.I | re.S,
)

KNOWN = (
    Heading(
        "sample size, sample, n, participants, number of participants, number of patients, number of subjects",
        "How many participants or samples were there?",
        (Move(("abstract", "methods", "results"), _SAMPLED, anywhere=True, may_lean=True, least=0.3),),
        ("A total of 120 participants took part in the study.", "We enrolled 76 patients.",
         "The sample consisted of 300 students.", "We collected 45 samples."),
        also="many students users learners people took take part involved enrolled recruited included",
        asks=r"\b(?:how many|number|sample|size|n)\b",
    ),
    Heading(
        "method, methods, methodology, approach",
        "What method does this paper use?",
        (Move(("abstract", "methods", "introduction", "conclusion"), _METHOD, least=0.25),),
    ),
    Heading(
        "main result, main results, result, results, main finding, main findings, finding, findings, key findings",
        "What are the main results of this paper?",
        (Move(("abstract", "conclusion", "results", "discussion"), _RESULT, least=0.2),),
    ),
    Heading(
        "limits, limit, limitations, limitation, weaknesses",
        "What are the limitations of this paper?",
        cues=_LIMITED,
    ),
    Heading(
        "funding, funding source, funders, funder, grants, sponsors, financial support",
        "Who funded this work?",
        cues=_FUNDED,
        also="supported support financed sponsored received",
    ),
    Heading(
        "programming language, programming languages, language of the code",
        "In which programming language is it written?",
        cues=_PROGRAMMED,
        also="software code implementation written material taught implemented",
        asks=r"\blanguages?\b",
    ),
    Heading(
        "code, source code, code availability, software availability, availability of the code",
        "Is the source code available?",
        cues=_RELEASED,
        also="publicly public open available released repository shared accessible",
        asks=r"\b(?:code|software)\b",
    ),
    Heading(
        "evaluation, evaluation method, validation",
        "How was it evaluated?",
        (Move(("abstract", "results", "methods", "conclusion"), _EVALUATED, anywhere=True, may_lean=True, least=0.2),),
        ("We evaluated the system in experiments on three data sets.", "We compared its run time with that of others.",
         "The course was evaluated with a survey of the students.", "We measured the error of the method."),
        also="evaluated tested assessed validated test",
    ),
    Heading(
        "conclusion, conclusions",
        "What does this paper conclude?",
        (Move(("conclusion", "abstract", "discussion"), _CONCLUDES),),
    ),
    Heading("contribution, contributions, main contribution, main contributions",
            "What are the main contributions of this paper?", (MOVES["claim"],)),
    Heading(
        "aim, aims, objective, objectives, goal, goals, purpose, research question",
        "What is the aim of this paper?",
        (Move(("abstract", "introduction"), _AIM), MOVES["claim"]),
    ),
    Heading(
        "data, dataset, data set, datasets, data sets, data source, data sources",
        "Which data set was used?",
        (Move(("abstract", "methods", "results"), _DATA, anywhere=True, may_lean=True, least=0.5),),
        ("We used a publicly available data set.", "The experiments use nine real-world datasets.",
         "The data were collected from a survey.", "We evaluate on the benchmark corpus."),
    ),
    Heading(
        "population, patients, study population",
        "Which patients or subjects were studied?",
        (Move(("abstract", "methods"), _POPULATION, anywhere=True),),
        ("Patients with type 2 diabetes aged 18 to 65 years were eligible.", "We recruited adults with depression.",
         "Participants were healthy students of the university."),
    ),
    Heading(
        "intervention, treatment, exposure",
        "Which treatment did the intervention group receive?",
        (Move(("abstract", "methods"), _TREATED, anywhere=True),),
        ("Patients were randomly assigned to receive 20 mg of the drug or placebo.",
         "The intervention group received eight weeks of training."),
    ),
    Heading(
        "comparison, comparator, control, control group",
        "What did the control group receive?",
        (Move(("abstract", "methods"), _COMPARED, anywhere=True),),
        ("The control group received placebo.", "The drug was compared with placebo.",
         "Patients in the control group received usual care."),
    ),
    Heading(
        "outcome, outcomes, outcome measure, outcome measures, primary outcome",
        "What was the primary outcome measure?",
        (Move(("abstract", "methods"), _OUTCOME, anywhere=True),),
        ("The primary outcome was the change in pain after six months.", "Primary endpoint was overall survival."),
    ),
)  # fmt: skip
SAMPLE_SIZE = KNOWN[0]
_BY_NAME = {name.strip(): heading for heading in KNOWN for name in heading.names.split(",")}
# Words that a question about any paper may have
_OF_ANY_PAPER = frozenset(
    tokenize("paper study work article author own state stated use used using report reported main kind type")
)


@lru_cache(maxsize=256)  # asked again of each paper, and of each quote with a value
def known_heading(column: Column) -> Heading | None:
    """The heading that a column asks for, by its name, or by a question that has no other words; None for others."""
    text = column.question or column.name
    heading = _BY_NAME.get(text.casefold().strip(" .?"))
    words = frozenset(tokenize(text)) - STOP_WORDS - _OF_ANY_PAPER
    if heading or not words:
        return heading
    among = (each for each in KNOWN if words <= each.words and re.search(each.asks, text, re.I))
    return next(among, None)


def announced(
    heading: Heading, words: PaperWords, sentences: Sequence[OwnSentence], embedder: Embedder
) -> Iterator[Quote]:
    """The sentences of a paper that answer a heading, best first. sentences: as from own_sentences. Raises ModelError.
    """
    seen = set[tuple[int, int]]()
    for quote in chain.from_iterable(map(words.saying, heading.cues)):
        if quote.span not in seen:
            seen.add(quote.span)
            yield quote
    if heading.moves:
        like = embedder.embed_passages(heading.like) if heading.like else vector_of(words.paper, embedder)
        ranked = (move.ranked(sentences, like, embedder) for move in heading.moves)
        yield from (sentence.quote for sentence in next(filter(None, ranked), []))


def asked(column: Column) -> str:
    """The question of a column: its own; without one what its heading stands for, or the heading."""
    if column.question:
        return column.question
    heading, name = known_heading(column), column.name.strip(" .?")
    return heading.question if heading else f"Which {name.lower() if name[1:].islower() else name} was used?"
