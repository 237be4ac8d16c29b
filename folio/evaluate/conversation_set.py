"""Sets of conversations by people: passages, follow-ups with the passages that answer them, and people's rewrites.

The layout is that of MTRAG (Katsis et al. 2025, https://arxiv.org/abs/2501.03468), in three files of JSON Lines.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from folio.errors import UsageError
from folio.evaluate.dataset_formats import (
    FORMAT,
    CorpusForm,
    RewriteForm,
    SpokenTurnForm,
    malformed,
    validated_entries,
)

PASSAGES, TURNS, REWRITES = "passages.jsonl", "turns.jsonl", "rewrites.jsonl"
# The annotations of a turn whose passages answer it, wholly or in part; the case does not matter.
ANSWERED = frozenset({"answerable", "partial"})
USER = "user"


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage to search."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question of a conversation that its passages answer."""

    id: str
    kind: str
    history: tuple[str, ...]  # the questions before it, at least one
    question: str
    gold: tuple[str, ...]  # the ids of the passages that answer it, at least one


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A follow-up as typed, and as a person wrote it so that it stands alone."""

    id: str
    history: tuple[str, ...]  # the questions before it, at least one
    question: str
    standalone: str


@dataclass(frozen=True, slots=True)
class Conversations:
    """The content of a folder with this layout."""

    passages: tuple[Passage, ...]
    followups: tuple[FollowUp, ...]
    rewrites: tuple[Rewrite, ...]


def is_conversations(folder: Path) -> bool:
    """Whether a folder has this layout."""
    return (folder / TURNS).is_file()


def load(folder: Path) -> Conversations:
    """The passages of a folder, its answered follow-ups and its rewrites; first turns and unanswered ones are left out.

    Raises UsageError for a file that is missing or malformed, and for gold that is no passage.
    """
    passages: dict[str, Passage] = {}
    for line, text in validated_entries(CorpusForm, folder / PASSAGES):
        _require_new(passages, text.id, folder / PASSAGES, line)
        passages[text.id] = Passage(text.id, (text.title or "").strip(), text.text)
    followups: dict[str, FollowUp] = {}
    for line, turn in validated_entries(SpokenTurnForm, folder / TURNS):
        _require_new(followups, turn.id, folder / TURNS, line)
        if unknown := [id for id in turn.gold if id not in passages]:
            raise malformed(folder / TURNS, line, f"its gold {unknown[0]} is not in {PASSAGES}")
        before = _asked(spoken.text for spoken in turn.history if spoken.speaker.casefold() == USER)
        if before and turn.gold and turn.answerability.casefold() in ANSWERED:
            gold = tuple(dict.fromkeys(turn.gold))
            followups[turn.id] = FollowUp(turn.id, turn.kind, before, turn.question, gold)
    if not followups:
        raise UsageError(f"{folder / TURNS} has no answered follow-up with gold.", f"Add some; {FORMAT}.")
    return Conversations(tuple(passages.values()), tuple(followups.values()), _rewrites(folder / REWRITES))


def _rewrites(path: Path) -> tuple[Rewrite, ...]:
    """The rewrites of a file; none if there is no file."""
    if not path.is_file():
        return ()
    rewrites: dict[str, Rewrite] = {}
    for line, form in validated_entries(RewriteForm, path):
        _require_new(rewrites, form.id, path, line)
        if before := _asked(form.history):
            rewrites[form.id] = Rewrite(form.id, before, form.question, form.standalone)
    return tuple(rewrites.values())


def _asked(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without white space around them, and without empty ones."""
    return tuple(text.strip() for text in texts if text.strip())


def _require_new(seen: Container[str], id: str, path: Path, line: int) -> None:
    if id in seen:
        raise malformed(path, line, f"the id {id} is used twice")
