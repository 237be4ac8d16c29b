"""The library, or the papers that are wanted, as a bibliography: /papers.bib and /papers.csl.json."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from folio.answer.bibliography_entries import library_bibtex, library_csl_json
from folio.app import App
from folio.errors import StoreMissing
from folio.store import works
from folio.types import Paper
from folio.web.paper_files import require_papers
from folio.web.paper_list import fitting_papers
from folio.web.schema import FilterRequest, paper_filter


def bibliography_routes(app: App) -> APIRouter:
    routes = APIRouter(tags=["Papers"])

    def read(wanted: FilterRequest) -> tuple[list[Paper], dict[str, str]]:
        """The papers that are wanted, and their publishers' BibTeX. Raises NotKnown."""
        with suppress(StoreMissing), closing(app.open_library()) as library, library.reading():
            require_papers(library, wanted.papers)
            papers = fitting_papers(library, replace(paper_filter(wanted), ids=frozenset(wanted.papers)))
            return papers, works.publishers_bibtex(library.database, [paper.id for paper in papers])
        return [], {}

    def download(text: str, media_type: str, name: str) -> Response:
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type=media_type, headers=headers)

    def content(media_type: str, description: str, schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
        return {200: {"description": description, "content": {media_type: {"schema": schema}}}}

    bibtex = content("application/x-bibtex", "The BibTeX file.", {"type": "string"})
    csl_json = content(
        "application/vnd.citationstyles.csl+json",
        "The CSL-JSON file.",
        {"type": "array", "items": {"type": "object"}},
    )

    @routes.get("/papers.bib", response_class=Response, responses=bibtex, summary="Export BibTeX")
    def export_bibtex(wanted: Annotated[FilterRequest, Query()]) -> Response:
        """The papers that are wanted, or all, as BibTeX, the publisher's where it is known. Fields that are not sure
        are left out, with a note that says so."""
        return download(library_bibtex(*read(wanted)), "application/x-bibtex", "folio.bib")

    @routes.post("/papers.bib", response_class=Response, responses=bibtex, summary="Export many as BibTeX")
    def export_chosen_bibtex(wanted: FilterRequest) -> Response:
        """The same, for more papers than an address can hold."""
        return export_bibtex(wanted)

    @routes.get("/papers.csl.json", response_class=Response, responses=csl_json, summary="Export CSL-JSON")
    def export_csl_json(wanted: Annotated[FilterRequest, Query()]) -> Response:
        """The papers that are wanted, or all, as CSL-JSON. Fields that are not sure are left out, with a note that says
        so."""
        text = library_csl_json(read(wanted)[0])
        return download(text, "application/vnd.citationstyles.csl+json", "folio.json")

    @routes.post("/papers.csl.json", response_class=Response, responses=csl_json, summary="Export many as CSL-JSON")
    def export_chosen_csl_json(wanted: FilterRequest) -> Response:
        """The same, for more papers than an address can hold."""
        return export_csl_json(wanted)

    return routes
