"""Searches services on the internet for works and fetches their papers, if the server may: by default it may not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Protocol

from folio.app import App
from folio.errors import NetworkOff, PaperError, SourceError, StoreMissing, command
from folio.ingest.discovery import Status
from folio.papers.identifiers import Identifier, find_identifier, parse_identifier
from folio.papers.model import Paper, SourceFile
from folio.papers.work import Work
from folio.schema.papers import paper_json
from folio.schema.web import (
    DiscoverQuery,
    DiscoverReply,
    FetchDoneEvent,
    FetchedEvent,
    FetchFailedEvent,
    FetchNoticeEvent,
    FetchProgressEvent,
    FetchStage,
    candidate_json,
)
from folio.services.answers import SearchQuery, SearchSource
from folio.services.keep import Candidate, Followed, PaperFound, candidates, keep_followed, link_papers
from folio.store import works
from folio.store.works import KeptWork
from folio.system.files import sha256_file
from folio.web.papers import PaperFiles, Upload, unknown_paper
from folio.web.stream import SendEvent, StageProgress

Check = Callable[[], None]  # raises to cancel
_START = f"Start it with `{command('serve --online')}`, or set `ONLINE=true`."
_OFF = f"Off: this Folio asks no service on the internet. {_START}"
_BY_HAND = "Get the file in a browser, and drop it onto the page."
_ON = "On: searches go to OpenAlex, Semantic Scholar or arXiv. Papers are downloaded from where they are free to read."


class Services(Protocol):
    """What a request may ask of the services. See folio/services/online.py."""

    def search(self, query: SearchQuery, source: SearchSource | None) -> list[list[Work]]: ...

    def find(self, identifiers: Sequence[Identifier]) -> list[Work | None]: ...

    def follow(self, paper: Paper, kept: Sequence[KeptWork]) -> list[Followed]: ...

    def download(self, wanted: Candidate, on_failure: Callable[[str], None]) -> bool: ...


class Online(Protocol):
    """The services, as the command that may open the network gives them to the server."""

    def opened(self, notice: Callable[[str], None], check_cancelled: Check) -> AbstractContextManager[Services]: ...


class PaperFetcher:
    """Thread-safe."""

    def __init__(self, app: App, paper_files: PaperFiles, online: Online | None) -> None:
        """online: None if the server may ask nobody."""
        self._app = app
        self._paper_files = paper_files
        self._online = online
        self._folder = Path(os.path.abspath(app.papers_folder))  # as ingestion stores paths

    @property
    def is_online(self) -> bool:
        return self._online is not None

    @property
    def note(self) -> str:
        """What may be asked, in words."""
        return _ON if self.is_online else _OFF

    def discover(self, query: DiscoverQuery, check_cancelled: Check) -> DiscoverReply:
        """The works that are wanted, and which of them are here. Raises NetworkOff, UsageError, SourceError."""
        online = self._require_online()
        notices: list[str] = []
        identifier = find_identifier(query.query)
        with online.opened(notices.append, check_cancelled) as services:
            if identifier:
                said = [work for work in services.find([identifier]) if work]
            else:
                said = [work for group in services.search(query.to_search(), query.source) for work in group]
        papers, kept = self._papers()
        found = candidates(said, papers, self._folder, kept)
        return DiscoverReply(works=[candidate_json(each) for each in found], notices=notices)

    def require_fetchable(self, ids: Sequence[str]) -> list[tuple[str, Identifier]]:
        """The ids with what they say. Raises NetworkOff, UsageError, StoreMismatch."""
        self._require_online()
        self._papers()
        return [(id, parse_identifier(id)) for id in dict.fromkeys(ids)]

    def fetch(
        self,
        wanted: Sequence[tuple[str, Identifier]],
        send: SendEvent,
        check_cancelled: Check,
        check_stopping: Check,
    ) -> FetchDoneEvent:
        """Download works and ingest them, one after the other. What fails is sent, and does not end the others.

        check_cancelled: raises once nobody waits. check_stopping: raises once the server stops; a file that is whole is
        ingested unless it does. Raises NetworkOff, StoreBusy, StoreMismatch, ModelError, DiskFull.
        """
        online = self._require_online()
        counts: Counter[str] = Counter()

        def notice(text: str) -> None:
            check_cancelled()
            send("notice", FetchNoticeEvent(text=text))

        with online.opened(notice, check_cancelled) as services:
            said = services.find([identifier for _, identifier in wanted])
            for (id, _), work in zip(wanted, said, strict=True):
                check_cancelled()
                try:
                    fetched = self._fetch(id, work, services, send, check_stopping)
                except (PaperError, SourceError) as error:
                    counts["failed"] += 1
                    failed = FetchFailedEvent(
                        id=id, title=work.title if work else "", error=error.happened, remedy=error.remedy
                    )
                    send("failed", failed)
                else:
                    counts["unchanged" if fetched.status in ("unchanged", "duplicate") else "added"] += 1
                    send("added", fetched)
        return FetchDoneEvent(added=counts["added"], unchanged=counts["unchanged"], failed=counts["failed"])

    def _fetch(
        self, id: str, work: Work | None, services: Services, send: SendEvent, check_stopping: Check
    ) -> FetchedEvent:
        if work is None:
            raise SourceError("No service has it.", "Check the identifier, or try again later.")
        papers, kept = self._papers()
        (found,) = candidates([work], papers, self._folder, kept)
        if found.paper_id:
            return self._fetched(id, found.paper_id, "unchanged")
        report = partial(_report, send, id, work.title)
        report("downloading", 0, 0)
        reasons: list[str] = []
        if not services.download(found, reasons.append):
            raise SourceError(f"No PDF could be downloaded: {' '.join(reasons)}", _BY_HAND)
        file = SourceFile(str(found.path), found.path.name, sha256_file(found.path))
        # Not "new", as an upload is: a download that is whole stays, also where it cannot be read.
        upload = Upload(file, is_new=False)
        said = PaperFound(found.works, "fetched", 1.0)
        outcome = self._paper_files.ingest(upload, StageProgress(report, check_stopping), said)
        return self._fetched(id, file.sha256, outcome.status, outcome.notes)

    def _fetched(self, id: str, paper: str, status: Status, notes: Sequence[str] = ()) -> FetchedEvent:
        with closing(self._app.open_library()) as library:
            found, added = library.papers_by_id([paper]), library.added()
        if not found or paper not in added:
            raise PaperError("The paper was removed while it was added.", "Add it again if you want it.")
        return FetchedEvent(id=id, status=status, paper=paper_json(found[0], added[paper]), notes=list(notes))

    def look_up_citations(self, paper: str, check_cancelled: Check) -> None:
        """Ask what a paper cites and what cites it, and keep that.

        Raises NetworkOff, NotKnown, StoreBusy, and SourceError if no service says anything.
        """
        online = self._require_online()
        with closing(self._app.open_library()) as library:
            found = library.papers_by_id([paper])
            if not found:
                raise unknown_paper()
            kept = works.of_paper(library.database, paper)
        failures: list[str] = []
        with online.opened(failures.append, check_cancelled) as services:
            followed = services.follow(found[0], kept)
        if not any(each.expansion.starts for each in followed):
            happened = " ".join(["No service is known to have this paper.", *failures])
            raise SourceError(happened, "Correct its title, or give it its DOI, with Edit.")
        with self._paper_files.writing(), closing(self._app.open_library()) as library:
            for each in followed:
                keep_followed(library, each)
            link_papers(library)

    def _papers(self) -> tuple[list[Paper], dict[str, str]]:
        """The papers of the index, and what their works are recognised by; none before the first ingest.

        Raises StoreMismatch.
        """
        try:
            library = self._app.open_library()
        except StoreMissing:
            return [], {}
        with closing(library):
            self._app.require_same_settings(library)
            papers = library.papers()
            return papers, works.marks_of_papers(library.database, [paper.id for paper in papers])

    def _require_online(self) -> Online:
        if self._online is None:
            raise NetworkOff("This Folio may not ask services on the internet.", _START)
        return self._online


def _report(send: SendEvent, id: str, title: str, stage: FetchStage, done: int, of: int) -> None:
    send("progress", FetchProgressEvent(id=id, title=title, stage=stage, done=done, of=of))
