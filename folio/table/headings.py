"""What a column asks of a paper. The headings that tables of papers usually have are known here, and only here.

"Method" or "Limits" shares hardly a word with its answer, so search alone finds other passages. Such a heading is
answered by a sentence with the words that authors announce it with, from the sections where they do: as in
answer/about.py. Any other heading is a question for the search. LOG.md has what each heading is worth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from folio.answer.about import MOVES, Move, OwnSentence, vector_of
from folio.answer_types import Quote
from folio.papers.model import Paper
from folio.protocols import Embedder
from folio.table.cell import Column


@dataclass(frozen=True, slots=True)
class Heading:
    """A known heading."""

    names: str  # in lower case, separated by commas
    question: str
    moves: tuple[Move, ...]  # the sentences that answer; of the second only if the first has none
    like: tuple[str, ...] = ()  # such sentences, to compare with; () for the title and the abstract


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

KNOWN = (
    Heading(
        "sample size, sample, n, participants, number of participants, number of patients, number of subjects",
        "How many participants or samples were there?",
        (Move(("abstract", "methods", "results"), _SAMPLED, anywhere=True, may_lean=True, least=0.3),),
        ("A total of 120 participants took part in the study.", "We enrolled 76 patients.",
         "The sample consisted of 300 students.", "We collected 45 samples."),
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
    Heading("limits, limit, limitations, limitation, weaknesses", "What are the limitations of this paper?",
            (replace(MOVES["limits"], may_lean=True),)),
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


def known_heading(column: Column) -> Heading | None:
    """The known heading of a column without a question of its own; None for others."""
    return None if column.question else _BY_NAME.get(column.name.casefold().strip(" .?"))


def announced(
    heading: Heading, paper: Paper, sentences: Sequence[OwnSentence], embedder: Embedder
) -> Iterator[Quote]:
    """The sentences of a paper that answer a heading, best first. sentences: as from own_sentences. Raises ModelError.
    """
    like = embedder.embed_passages(heading.like) if heading.like else vector_of(paper, embedder)
    ranked = (move.ranked(sentences, like, embedder) for move in heading.moves)
    yield from (sentence.quote for sentence in next(filter(None, ranked), []))


def asked(column: Column) -> str:
    """The question of a column: its own; without one what its heading stands for, or the heading."""
    if column.question:
        return column.question
    heading, name = known_heading(column), column.name.strip(" .?")
    return heading.question if heading else f"Which {name.lower() if name[1:].islower() else name} was used?"
