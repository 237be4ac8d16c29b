"""Projects as JSON models, for the web API and `folio projects --json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from folio.answer_types import Scope
from folio.papers.model import Paper
from folio.schema.notes import NOTE, NoteId
from folio.schema.papers import Count, PaperId, Sha256, Strict
from folio.schema.web import NOT_BLANK, ConversationId, ConversationSummary, PaperIds, PaperRule
from folio.search.filters import ProjectPapers
from folio.store.projects import LONGEST_ABOUT, LONGEST_NAME, Member, Rule, rule_item

ProjectId = Annotated[str, Field(pattern=NOTE, description="Opaque; returned with a new project.")]
TableId = Annotated[str, Field(pattern=NOTE, description="Of an evidence table.")]
_Name = Annotated[str, Field(pattern=NOT_BLANK, max_length=LONGEST_NAME)]
_About = Annotated[str, Field(max_length=LONGEST_ABOUT)]
_MOST = 1_000  # parts of each kind in a request, but papers


class ProjectParts(Strict):
    """Parts of a project."""

    papers: PaperIds = Field(default_factory=list)
    rules: Annotated[list[PaperRule], Field(max_length=_MOST)] = Field(default_factory=list)
    """Filters: the papers that fit belong to the project, also those that are added later."""
    conversations: Annotated[list[ConversationId], Field(max_length=_MOST)] = Field(default_factory=list)
    notes: Annotated[list[NoteId], Field(max_length=_MOST)] = Field(default_factory=list)
    tables: Annotated[list[TableId], Field(max_length=_MOST)] = Field(default_factory=list)


class NewProject(ProjectParts):
    name: _Name
    about: _About = ""
    """What it is for."""
    copy_of: ProjectId | None = None
    """Another project whose parts it gets; of a collection, a rule that follows it."""


class ProjectChanges(Strict):
    """Changes of a project; null leaves a value as it is."""

    name: _Name | None = None
    about: _About | None = None


class PartChanges(Strict):
    """Parts that a project gets and loses. A paper that is removed stays out, also if a rule finds it."""

    add: ProjectParts = ProjectParts()
    remove: ProjectParts = ProjectParts()


class ProjectSummary(Strict):
    """A project, or a collection of Zotero or a bibliography, which is changed there and can be copied."""

    id: ProjectId
    name: str
    about: str
    own: bool
    """Whether a person made it here; else it is a collection."""
    papers: Count
    """The number of papers that it has now, in the library."""
    updated: str
    """ISO time in UTC; empty for a collection."""


class ProjectList(Strict):
    projects: list[ProjectSummary]
    """A person's, then collections, each by name."""


class MissingPaper(Strict):
    """A paper that was put into a project and is not in the library now."""

    paper: PaperId
    title: str


class ProjectDetails(ProjectSummary):
    paper_ids: list[Sha256]
    """Its papers in the library."""
    by_hand: list[Sha256]
    """Of these, the ones that were put in one by one."""
    missing: list[MissingPaper]
    excluded: list[MissingPaper]
    """Papers that a person took out."""
    rules: list[PaperRule]
    conversations: list[ConversationSummary]
    """Latest first."""
    notes: Count
    """The number of notes on its papers, of its conversations, and that were put in."""
    note_ids: list[NoteId]
    """Notes that were put in."""
    tables: list[TableId]


class ScopeLine(Strict):
    """What a question would be asked of, in words."""

    line: str
    """"12 papers in Consensus, 2000 to 2015", "All 95 papers"; why no paper fits."""
    papers: Count
    restricted: bool
    """Whether it is less than the whole library."""


def rule_of(rule: PaperRule) -> Rule:
    return {name: tuple(values) for name, values in rule.model_dump().items() if values}


def parts_of(parts: ProjectParts, papers: Iterable[Paper]) -> list[Member]:
    """The members that a request names. papers: its papers as they are in the library, as far as they are there."""
    titles = {paper.id: paper.title or paper.file for paper in papers}
    return [
        *(Member("paper", id, titles.get(id, "")) for id in parts.papers),
        *(Member("rule", rule_item(rule_of(rule))) for rule in parts.rules),
        *(Member("conversation", id) for id in parts.conversations),
        *(Member("note", id) for id in parts.notes),
        *(Member("table", id) for id in parts.tables),
    ]


def project_summary(found: ProjectPapers) -> ProjectSummary:
    return ProjectSummary.model_validate(_summary(found))


def _summary(found: ProjectPapers) -> dict[str, object]:
    own = found.own
    return {
        "id": found.id,
        "name": found.name,
        "about": own.about if own else "",
        "own": own is not None,
        "papers": len(found.papers),
        "updated": own.updated if own else "",
    }


def project_details(
    found: ProjectPapers, papers: Iterable[Paper], conversations: Iterable[ConversationSummary], notes: int
) -> ProjectDetails:
    """papers: those of the library, in its order. conversations: of the project. notes: the number of its notes."""
    own = found.own
    present = [paper.id for paper in papers]
    members = own.members if own else ()
    missing = [each for each in members if each.kind == "paper" and each.item not in set(present)]
    excluded = [each for each in members if each.kind == "excluded"]
    given = {
        **_summary(found),
        "paper_ids": [id for id in present if id in found.papers],
        "by_hand": [id for id in present if id in found.by_hand],
        "missing": [{"paper": each.item, "title": each.title} for each in missing],
        "excluded": [{"paper": each.item, "title": each.title} for each in excluded],
        "rules": own.rules if own else [],
        "conversations": list(conversations),
        "notes": notes,
        "note_ids": own.items("note") if own else [],
        "tables": own.items("table") if own else [],
    }
    return ProjectDetails.model_validate(given)


def scope_line(scope: Scope) -> ScopeLine:
    return ScopeLine(line=scope.line, papers=scope.count, restricted=scope.is_restricted)
