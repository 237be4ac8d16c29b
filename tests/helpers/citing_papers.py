"""Two papers that cite each other's works, as services on the loopback tell it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from folio.app import App
from folio.papers.metadata import Field, Metadata
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.libraries import set_pdf_metadata
from tests.helpers.live_server import builtin_app
from tests.helpers.source_records import openalex_list, openalex_work
from tests.helpers.source_server import Answer, SourceServer, json_answer

OTTER_TITLE, ICE_TITLE = "On the Sea Otters of Alaska", "The Length of the Aletsch Glacier"
OTTER_DOI, ICE_DOI = "10.1234/otters", "10.1234/ice"
FISH, WATER, SONGS = "Three Kinds of Fish", "Four Kinds of Water", "Six Otter Songs"
UNNAMED = "W99"  # a reference that no service describes


def stand_in_app(folder: Path, server: SourceServer) -> App:
    """The app over the papers of a folder, with the server in place of the services."""
    (folder / "papers").mkdir(exist_ok=True)
    return builtin_app(folder, folder / "papers", SOURCES_STAND_IN=server.url, CACHE_DIR=str(folder / "cache"))


def citing_papers(folder: Path, server: SourceServer) -> App:
    """The otters (W11) cite the glaciers (W12), W13, W14 and one that nobody describes; W16 cites the otters."""
    write_pdf(folder / "papers" / "otters.pdf", OTTERS, OTTER_TITLE)
    write_pdf(folder / "papers" / "glaciers.pdf", GLACIERS, ICE_TITLE)
    app = stand_in_app(folder, server)
    with closing(app.open_library()) as library:
        for paper in library.papers():
            title, doi = (OTTER_TITLE, OTTER_DOI) if paper.file == "otters.pdf" else (ICE_TITLE, ICE_DOI)
            said = Metadata(title=Field(title, "page", True), doi=Field(doi, "page", True))
            set_pdf_metadata(library, paper.id, said)
    cited = [f"https://openalex.org/{name}" for name in ("W12", "W13", "W14", UNNAMED)]
    link = {"is_oa": True, "pdf_url": f"{server.url}/files/13"}
    of = {
        11: openalex_work(11, OTTER_TITLE, "Cy Otter", doi=OTTER_DOI, referenced_works=cited),
        12: openalex_work(12, ICE_TITLE, "Ada Ice", doi=ICE_DOI),
        13: openalex_work(13, FISH, "Al Fin", cited_by_count=2, best_oa_location=link),
        14: openalex_work(14, WATER, "Bo Wet", cited_by_count=900, is_retracted=True),
        16: openalex_work(16, SONGS, "Si Six", cited_by_count=1),
    }
    for doi, number in ((OTTER_DOI, 11), (ICE_DOI, 12)):
        server.add(f"/openalex/works/doi:{doi}", json_answer(of[number]))
    for number, work in of.items():
        server.add(f"/openalex/works/W{number}", json_answer(work))
    # The first answer is for every other request of a list: nothing
    server.add("/openalex/works", json_answer(openalex_list()))
    wanted = {"filter": f"openalex:W12|W13|W14|{UNNAMED}"}
    server.add("/openalex/works", json_answer(openalex_list(of[12], of[13], of[14])), parameters=wanted)
    server.add("/openalex/works", json_answer(openalex_list(of[16])), parameters={"filter": "cites:W11"})
    made = write_pdf(folder / "made" / "fish.pdf", ["There are three kinds of fish in the lakes of the valley."])
    server.add("/files/13", Answer(made.read_bytes()))
    return app
