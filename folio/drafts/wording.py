"""The words of a claim, and whether a source has them, in one form or another, or as a word that means the same. Pure.

It is strict on purpose. A word that the source does not have may be the one that makes a sentence wrong, so that only
words that say nothing by themselves may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import eq
from typing import NamedTuple

from folio.grounding.negation import DENIALS, sides_of
from folio.text import STOP_WORDS, tokenize, typed

# Words joined by hyphens; numbers and names with digits are compared elsewhere.
_COMPOUND = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*(?:[-‐‑–][^\W\d_]+)*(?![\w])")
# A first part that changes the meaning of the next one belongs to it: "non-linear" is not "linear".
_MODIFYING = frozenset(
    "anti auto bi co counter cross de dis extra hyper hypo in infra inter intra ir macro mega meta micro mid mini mis"
    " mono multi non over poly post pre pseudo quasi re self semi sub super supra trans tri ultra un under uni well"
    .split()
)
# Words that a claim may add: they introduce, connect, or say what every sentence of a paper does.
_SAYS_NOTHING = frozenset(
    stem
    for word in (
        "according achieve achieved across actually additional additionally allow along already also although"
        " among apply approach article aspect author based become call called carry case certain come comprise"
        " concern conduct consider consist contain context contribution corresponding demonstrate describe design"
        " develop discuss document effort employ entire equip especially eventually explain explicit explore face"
        " feature final finally find finding following fully furthermore generally get give given goal good hand"
        " help hence highlight implement implementation include indeed indicate instance introduce introduction"
        " investigate involve issue itself kind latter lead let level like made main mainly make manner may mean"
        " means might mention method moreover namely need notably note number observe obtain offer order overall"
        " overview own paper part particular particularly per perform place point present presentation previously"
        " problem proceed produce program project propose provide publication purpose put rather realise really"
        " receive regard relate relevant report research respect result reveal role run say see serve set several"
        " shape show simply situation so specific specifically state step study subsequently such summarise"
        " support take task technique therefore thus together tool towards turn type typical ultimately upon use"
        " used user using utilise various version via want way well whole whose within work write written yield"
    ).split()
    for stem in tokenize(word)
)
# Words for the same thing in papers. A word may be in several groups.
_SAME = """
use employ utilise utilize apply adopt leverage rely | show demonstrate reveal prove establish illustrate | build
construct create develop make produce implement design | introduce present propose describe | boost improve enhance
better gain | combine aggregate merge integrate join unify fuse | detect identify recognise recognize distinguish
discover spot | compute calculate determine derive estimate | remove eliminate delete drop discard rid | get obtain
acquire receive | give provide offer supply deliver grant | begin start commence initiate | stop end finish terminate
cease | let allow permit enable | help assist aid facilitate support ease | need require demand necessitate | big
large substantial considerable sizable great | small little minor tiny | fast quick rapid speedy | main principal
primary chief key central | aim goal objective purpose intend target | teach instruct train educate | learn study |
student learner pupil | teacher instructor educator lecturer | course class | lesson tutorial module unit | exercise
task problem assignment activity | book textbook ebook | web internet online website | free gratis | author writer |
code software program source | fix correct repair | error mistake fault bug | test evaluate assess examine check |
compare contrast | select choose pick | choice selection | keep retain preserve maintain | store save deposit archive
| share distribute | change modify alter adjust adapt | replace substitute | find locate discover recover retrieve |
write author compose | run execute perform | result outcome finding | method approach technique procedure | dataset
data | paper article publication | experiment trial | participant subject attendee | replicate reproduce | replication
reproduction | important crucial essential vital significant | hard difficult challenging tough | easy simple
straightforward | common frequent widespread | rare uncommon infrequent | enough sufficient adequate | explain clarify
| cause induce trigger | prevent avoid | contain include comprise incorporate consist hold | cover address treat |
divide split separate partition | link connect | guess infer deduce | automatic automated automatically | entire whole
complete full | new novel | original initial | last final | usual typical normal | precise exact accurate | whole all
| speed pace rate | cost expense price | quantity amount | area region zone | city town | nation country | company
firm enterprise | worker employee | child kid | doctor physician | illness disease sickness | drug medicine medication
| die death mortality | picture image | movie film | car automobile vehicle | begin launch | team group | happen occur
arise | lack absence missing | quarter three-month | rely draw base | draw depict visualise visualize plot display |
visualisation visualization depiction | view perspective | describe characterise characterize | analyse analyze
analysis | optimise optimize optimisation optimization | organise organize organisation organization | generalise
generalize generalisation | standardise standardize | behaviour behavior | colour color | modelling modeling model |
labelled labeled label | programme program | centre center | licence license | favour favor | grey gray | fulfil
fulfill | catalogue catalog | analogue analog | reproducibility reproducible | twice double | half halved | decade
ten-year | publish release | accessible available | command shell | terminal console | notebook jupyter | mathematical
math mathematics maths | statistic statistical | inspire motivate | rest remainder | advise recommend suggest advice
recommendation | request query | answer respond reply response | breach compromise | attacker adversary intruder |
trust trusted | user person | permit grant authorise authorize | firm strict | forbid ban prohibit | quarter quarterly
| monthly month | yearly annual annually year | daily day | weekly week | nearly almost | precisely exactly | solely
only | mostly mainly primarily largely chiefly | frequently often | spanish-speaking hispanophone | announce report
disclose declare reveal | inquiry probe investigation | proof evidence | focus aim center centre concentrate | novel
innovative groundbreaking | customise customize personalise personalize tailor | impact effect influence | innovative
novel original | ahead forward | concern worry | expand extend | record capture | strategy policy tactic | look search
seek | convert transform turn translate | simulate simulation | install installation | resemble similar alike
comparable | identical same | differ different | accord agree consistent | concurrent simultaneous parallel | depend
rely | own possess have | grade score mark | rank order | fit match |
"""
_FALSE_FRIENDS = frozenset(
    frozenset((tokenize(word) or [word])[0] for word in pair.split())
    for pair in ("community communication", "experience experiment", "author authority", "organ organise")
)
_NOT = ("un", "in", "im", "ir", "non", "dis", "de", "mis")
_DEGREE = re.compile(r"(?<=\w{4})(?:er|est|li)$")  # deeper, deepest, deeply, as stems
_MEMBERS: dict[str, set[int]] = {}
for _number, _group in enumerate(_SAME.split("|")):
    for _member in _group.split():
        for _stem in tokenize(_member)[:1]:
            _MEMBERS.setdefault(_stem, set()).add(_number)
_SHORTEST_BEGINNING, _LEAST_COMMON, _MOST_MORE = 6, 0.85, 4  # of stems that are forms of one word


class Word(NamedTuple):
    """A word of a text that says something."""

    stem: str
    start: int  # in the text as typed
    written: str  # in lower case
    is_name: bool  # whether it has a capital


@lru_cache(maxsize=8192)
def words_of_claim(text: str) -> tuple[Word, ...]:
    """The words of a text in order, without stop words and denials, which have rules of their own."""
    return tuple(word for word in _words(typed(text)) if word.stem not in DENIALS)


def _words(text: str) -> Iterator[Word]:
    for match in _COMPOUND.finditer(text):
        if match.start() and (text[match.start() - 1].isdigit() or text[match.start() - 1] == "_"):
            continue
        at, parts, held = match.start(), re.split(r"[-‐‑–]", match.group()), ""
        for place, part in enumerate(parts):
            written = held + part.casefold()
            held = ""
            if part.casefold() in _MODIFYING and place + 1 < len(parts):
                held = written
            elif written not in STOP_WORDS and len(written) > 1 and (tokens := tokenize(_plain(written))):
                yield Word(tokens[0], at, written, part[0].isupper())
            at += len(part) + 1


# Forms that a stemmer does not bring together
_IRREGULAR = {
    form: verb
    for group in (
        "take took taken|get got gotten|give gave given|make made|run ran|find found|hold held|keep kept|lead"
        " led|leave left|mean meant|see saw seen|say said|send sent|show shown|teach taught|think thought|tell"
        " told|write wrote written|build built|buy bought|bring brought|begin began begun|choose chose chosen|come"
        " came|do done|draw drew drawn|feel felt|know knew known|become became|speak spoke spoken|break broke"
        " broken|drive drove driven|win won|meet met|read|understand understood|child children|mouse mice|foot"
        " feet|man men|woman women|person people|criterion criteria|phenomenon phenomena|hypothesis"
        " hypotheses|analysis analyses|datum data"
    ).split("|")
    for verb, *forms in (group.split(),)
    for form in forms
}


def _plain(word: str) -> str:
    return _IRREGULAR.get(word, word)


def says_nothing(stem: str) -> bool:
    """Whether a claim may have this word although its source has not."""
    return stem in _SAYS_NOTHING and not sides_of(stem)


def align(words: Sequence[Word], source: Sequence[Word]) -> list[int | None]:
    """For each word of a claim, the place of its own word in a source; None if the source has none left for it.

    The same word first, then a form of it, then one that means the same. A word that a claim has twice must be there
    twice, or it may be said of something else.
    """
    left = dict(enumerate(source))
    found: list[int | None] = [None] * len(words)
    for fits in (eq, _is_form, means_same):
        last = -1
        for number, word in enumerate(words):
            if found[number] is not None:
                last = found[number] or 0
                continue
            fitting = [place for place, other in left.items() if fits(word.stem, other.stem)]
            place = min(fitting, key=lambda place: (place < last, place), default=None)
            if place is not None:
                found[number] = last = place
                del left[place]
    return found


def has_word(stem: str, source: frozenset[str]) -> bool:
    """Whether a source, as stems, has a word, a form of it, or one that means the same."""
    return stem in source or any(is_same_word(stem, other) for other in source)


def is_same_word(stem: str, other: str) -> bool:
    """Whether two stems are of one word, or of two that mean the same."""
    return stem == other or _is_form(stem, other) or means_same(stem, other)


def are_opposite(stem: str, other: str) -> bool:
    """Whether two stems are opposites: larg and small, satisfi and dissatisfi."""
    sides = sides_of(other)
    if any((number, not side) in sides for number, side in sides_of(stem)):
        return True
    short, long = sorted((stem, other), key=len)
    return any(long == f"{prefix}{short}" for prefix in _NOT)


@lru_cache(maxsize=65536)
def means_same(stem: str, other: str) -> bool:
    """Whether two stems are in one group of words that mean the same, or on the same side of opposites."""
    groups, sides = _MEMBERS.get(stem), sides_of(stem)
    return bool(groups and not groups.isdisjoint(_MEMBERS.get(other, ()))) or not sides.isdisjoint(sides_of(other))


@lru_cache(maxsize=65536)
def _is_form(stem: str, other: str) -> bool:
    """Whether two stems are forms of one word: optimis, optim."""
    if _DEGREE.sub("", stem) == _DEGREE.sub("", other):
        return True
    short, long = sorted((stem, other), key=len)
    if len(short) < _SHORTEST_BEGINNING or len(long) - len(short) > _MOST_MORE:
        return False
    common = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    is_common = common >= max(_SHORTEST_BEGINNING, _LEAST_COMMON * len(short))
    return is_common and frozenset((stem, other)) not in _FALSE_FRIENDS
