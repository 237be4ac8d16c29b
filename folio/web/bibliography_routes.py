"""The whole library as a bibliography: GET /papers.bib and GET /papers.csl.json."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from folio.answer.bibliography_entries import library_bibtex, library_csl_json
from folio.app import App
from folio.errors import StoreMissing
from folio.store import works
from folio.types import Paper


def bibliography_routes(app: App) -> APIRouter:
    routes = APIRouter(tags=["Papers"])

    def read() -> tuple[list[Paper], dict[str, str]]:
        """The papers, and their publishers' BibTeX."""
        with suppress(StoreMissing), closing(app.open_library()) as library:
            papers = library.papers()
            return papers, works.publishers_bibtex(library.database, [paper.id for paper in papers])
        return [], {}

    def download(text: str, media_type: str, name: str) -> Response:
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type=media_type, headers=headers)

    def content(media_type: str, description: str, schema: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
        return {200: {"description": description, "content": {media_type: {"schema": schema}}}}

    @routes.get(
        "/papers.bib",
        response_class=PlainTextResponse,
        responses=content("application/x-bibtex", "The BibTeX file.", {"type": "string"}),
        summary="Export BibTeX",
    )
    def export_bibtex() -> Response:
        """All papers as BibTeX, the publisher's where it is known. Fields that are not sure are left out, with a note
        that says so."""
        return download(library_bibtex(*read()), "application/x-bibtex", "folio.bib")

    @routes.get(
        "/papers.csl.json",
        response_class=Response,
        responses=content(
            "application/vnd.citationstyles.csl+json",
            "The CSL-JSON file.",
            {"type": "array", "items": {"type": "object"}},
        ),
        summary="Export CSL-JSON",
    )
    def export_csl_json() -> Response:
        """All papers as CSL-JSON. Fields that are not sure are left out, with a note that says so."""
        return download(library_csl_json(read()[0]), "application/vnd.citationstyles.csl+json", "folio.json")

    return routes
