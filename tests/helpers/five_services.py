"""Five services that answer any search, as a question sends it to all of them."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.factories import OTTERS, write_pdf
from tests.helpers.source_records import (
    arxiv_entry,
    arxiv_feed,
    crossref_list,
    crossref_work,
    europepmc_list,
    europepmc_work,
    openalex_list,
    openalex_work,
)
from tests.helpers.source_server import Answer, SourceServer, json_answer

SEARCHES = {"/arxiv/query", "/openalex/works", "/semanticscholar/paper/search", "/crossref/works", "/europepmc/search"}
_ABSTRACT = {word: [at] for at, word in enumerate("The fur of a sea otter is dense .".split())}


def five_services(folder: Path, server: SourceServer) -> None:
    """What each service finds for any search; one paper about the fur of otters has an open copy."""
    otters = write_pdf(folder / "made" / "made.pdf", OTTERS, "On Sea Otters").read_bytes()
    server.add("/files/otters", Answer(otters))
    link = {"is_oa": True, "pdf_url": f"{server.url}/files/otters"}
    dense = openalex_work(7, "The Fur of Sea Otters", "Cy Otter", doi="10.1234/fur", best_oa_location=link)
    dense["abstract_inverted_index"] = _ABSTRACT
    closed = openalex_work(8, "Prices of Fur", "Dee Seal", doi="10.1234/closed", open_access={"is_oa": False})
    server.add("/openalex/works/doi:10.1234/fur", json_answer(dense))
    server.add("/openalex/works", json_answer(openalex_list(closed, dense)))
    server.add("/arxiv/query", Answer(arxiv_feed(arxiv_entry("2101.00001v1", "Strings and Branes", "A B"))))
    server.add("/semanticscholar/paper/search", json_answer({"total": 0, "data": []}))
    same = crossref_work("10.1234/fur", "The Fur of Sea Otters", ("Cy", "Otter"))
    server.add("/crossref/works", json_answer(crossref_list(same)))
    server.add("/europepmc/search", json_answer(europepmc_list(europepmc_work(7, "Kelp", ("A", "B"), doi="10.1234/k"))))
