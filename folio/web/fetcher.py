"""Searches services on the internet for works and fetches their papers, if the server may: by default it may not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Protocol

from folio.app import App
from folio.errors import NetworkOff, PaperError, SourceError
from folio.ingest.discovery import Status
from folio.papers.identifiers import Identifier, find_identifier, parse_identifier
from folio.papers.model import Paper, SourceFile
from folio.papers.work import Work, grouped, merged
from folio.schema import web as schema
from folio.schema.papers import paper_json
from folio.services.answers import SearchQuery, SearchSource
from folio.services.keep import Candidate, Followed, PaperFound, candidates, keep_followed, link_papers
from folio.store import works
from folio.store.works import KeptWork
from folio.system.files import sha256_file
from folio.web.papers import PaperFiles, Upload, require_papers
from folio.web.stream import SendEvent, StageProgress

Check = Callable[[], None]  # raises to cancel
MOST_SHOWN = 10  # works for a question
_START = "Turn it on in Settings, under Internet."
_OFF = f"Off: this Folio contacts no service on the internet. {_START}"
_BY_HAND = "Get the file in a browser, and drop it onto the page."
_ON = (
    "On: searches go to OpenAlex, Semantic Scholar, arXiv or Europe PMC. Papers are downloaded from where they are free"
    " to read."
)


class Services(Protocol):
    """Services on the internet during one request. See folio/services/online.py."""

    def search(self, query: SearchQuery, source: SearchSource | None) -> list[list[Work]]: ...

    def find(self, identifiers: Sequence[Identifier]) -> list[Work | None]: ...

    def follow(self, paper: Paper, kept: Sequence[KeptWork]) -> list[Followed]: ...

    def download(self, wanted: Candidate, on_failure: Callable[[str], None]) -> bool: ...


class Online(Protocol):
    """Opens the services. Only a command that may use the internet gives this to the server.

    See folio/services/online.py.
    """

    def search_all(self, searches: Sequence[str], notice: Callable[[str], None], check_cancelled: Check) -> list[Work]:
        ...

    def opened(self, notice: Callable[[str], None], check_cancelled: Check) -> AbstractContextManager[Services]: ...


class PaperFetcher:
    """Thread-safe."""

    def __init__(self, app: App, paper_files: PaperFiles, online: Online | None) -> None:
        """online: None if the server may not use the internet."""
        self._app = app
        self._paper_files = paper_files
        self._online = online

    @property
    def _folder(self) -> Path:
        """PAPERS_DIR, as ingestion stores paths. The setting may change."""
        return Path(os.path.abspath(self._app.papers_folder))

    def go_online(self, online: Online | None) -> None:
        """Use services on the internet from now on, or no longer."""
        self._online = online

    @property
    def is_online(self) -> bool:
        return self._online is not None

    @property
    def note(self) -> str:
        """Whether and which services are contacted, as a sentence for people."""
        return _ON if self.is_online else _OFF

    def discover(self, query: schema.DiscoverQuery, check_cancelled: Check) -> schema.DiscoverReply:
        """The works that match, and which of them are in the library. Raises NetworkOff, UsageError, SourceError."""
        online = self._require_online()
        notices: list[str] = []
        identifier = find_identifier(query.query)
        with online.opened(notices.append, check_cancelled) as services:
            if identifier:
                found = [work for work in services.find([identifier]) if work]
            else:
                found = [work for group in services.search(query.to_search(), query.source) for work in group]
        papers, marks = self._app.papers_and_marks()
        works = [schema.candidate_json(each) for each in candidates(found, papers, self._folder, marks)]
        return schema.DiscoverReply(works=works, notices=notices)

    def propose(self, request: schema.MissingRequest) -> schema.ProposedSearches:
        """Searches for papers that may answer a question. Nothing is sent. Raises NetworkOff."""
        self._require_online()
        return schema.ProposedSearches(searches=list(self._app.searches_for(request.question, request.missing)))

    def find_for(self, request: schema.SearchesRequest, check_cancelled: Check) -> schema.DiscoverReply:
        """The works that all services find for these searches, ordered by how well they fit the question.

        Raises NetworkOff, SourceError, ModelError.
        """
        online = self._require_online()
        notices: list[str] = []
        groups = grouped(online.search_all(request.searches, notices.append, check_cancelled))
        ranked = self._app.rank_works(request.question, [merged(group) for group in groups])
        papers, marks = self._app.papers_and_marks()
        works = [
            schema.candidate_json(candidate, each.sentence)
            for each in ranked[:MOST_SHOWN]
            for candidate in candidates(groups[each.place], papers, self._folder, marks)[:1]
        ]
        return schema.DiscoverReply(works=works, notices=list(dict.fromkeys(notices)))

    def require_fetchable(self, ids: Sequence[str]) -> list[tuple[str, Identifier]]:
        """The ids with their identifiers. Raises NetworkOff, UsageError, StoreMismatch."""
        self._require_online()
        self._app.papers_and_marks()
        return [(id, parse_identifier(id)) for id in dict.fromkeys(ids)]

    def fetch(
        self,
        ids: Sequence[tuple[str, Identifier]],
        send: SendEvent,
        check_cancelled: Check,
        check_stopping: Check,
    ) -> schema.FetchDoneEvent:
        """Download works and ingest them, one after the other. A failure is sent as an event; the others continue.

        check_cancelled: raises once the client has left. check_stopping: raises once the server stops; until then, a
        complete file is ingested even for a client that has left. Raises NetworkOff, StoreBusy, StoreMismatch,
        ModelError, DiskFull.
        """
        online = self._require_online()
        counts: Counter[str] = Counter()

        def notice(text: str) -> None:
            check_cancelled()
            send("notice", schema.FetchNoticeEvent(text=text))

        with online.opened(notice, check_cancelled) as services:
            works = services.find([identifier for _, identifier in ids])
            for (id, _), work in zip(ids, works, strict=True):
                check_cancelled()
                try:
                    fetched = self._fetch(id, work, services, send, check_stopping)
                except (PaperError, SourceError) as error:
                    counts["failed"] += 1
                    title = work.title if work else ""
                    send(
                        "failed", schema.FetchFailedEvent(id=id, title=title, error=error.happened, remedy=error.remedy)
                    )
                else:
                    counts["unchanged" if fetched.status in ("unchanged", "duplicate") else "added"] += 1
                    send("added", fetched)
        return schema.FetchDoneEvent(added=counts["added"], unchanged=counts["unchanged"], failed=counts["failed"])

    def _fetch(
        self, id: str, work: Work | None, services: Services, send: SendEvent, check_stopping: Check
    ) -> schema.FetchedEvent:
        if work is None:
            raise SourceError("No service has this work.", "Check the identifier, or try again later.")
        papers, marks = self._app.papers_and_marks()
        (candidate,) = candidates([work], papers, self._folder, marks)
        if candidate.paper_id:
            return self._fetched(id, candidate.paper_id, "unchanged")

        def report(stage: schema.FetchStage, done: int, of: int) -> None:
            send("progress", schema.FetchProgressEvent(id=id, title=work.title, stage=stage, done=done, of=of))

        report("downloading", 0, 0)
        reasons: list[str] = []
        if not services.download(candidate, reasons.append):
            raise SourceError(f"No PDF could be downloaded: {' '.join(reasons)}", _BY_HAND)
        file = SourceFile(str(candidate.path), candidate.path.name, sha256_file(candidate.path))
        upload = Upload(file, is_new=False)  # unlike a new upload, a complete download stays even if it is unreadable
        found = PaperFound(candidate.works, "fetched", 1.0)
        outcome = self._paper_files.ingest(upload, StageProgress(report, check_stopping), found)
        return self._fetched(id, file.sha256, outcome.status, outcome.notes)

    def _fetched(self, id: str, paper: str, status: Status, notes: Sequence[str] = ()) -> schema.FetchedEvent:
        with closing(self._app.open_library()) as library:
            papers, added = library.papers_by_id([paper]), library.added()
        if not papers or paper not in added:
            raise PaperError("The paper was removed while it was added.", "Add it again if you want it.")
        return schema.FetchedEvent(id=id, status=status, paper=paper_json(papers[0], added[paper]), notes=list(notes))

    def look_up_citations(self, paper: str, check_cancelled: Check) -> None:
        """Look up the works that a paper cites and that cite it, and store them.

        Raises NetworkOff, NotKnown, StoreBusy, and SourceError if no service knows the paper.
        """
        online = self._require_online()
        with closing(self._app.open_library()) as library:
            (stored,) = require_papers(library, [paper])
            kept = works.of_paper(library.database, paper)
        failures: list[str] = []
        with online.opened(failures.append, check_cancelled) as services:
            followed = services.follow(stored, kept)
        if not any(each.expansion.starts for each in followed):
            happened = " ".join(["No service is known to have this paper.", *failures])
            raise SourceError(happened, "Use Edit to correct its title or to add its DOI.")
        with self._paper_files.writing(), closing(self._app.open_library()) as library:
            for each in followed:
                keep_followed(library, each)
            link_papers(library)

    def _require_online(self) -> Online:
        if self._online is None:
            raise NetworkOff("This Folio may not contact services on the internet.", _START)
        return self._online
