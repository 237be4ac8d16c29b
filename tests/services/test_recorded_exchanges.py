"""Exchanges with the real services, recorded, as the clients read them. Skipped where the recordings are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from folio.bibliography import bibtex
from folio.errors import SourceError
from folio.papers.metadata import PersonName
from folio.papers.work import Work, merged
from folio.services import arxiv, crossref, openalex, semantic_scholar
from tests.helpers.paths import ROOT

RECORDED = ROOT.parent / "shared" / "apis"
SERVICES = ("arxiv", "crossref", "openalex", "semanticscholar", "unpaywall")
FILES = sorted(path for service in SERVICES for path in (RECORDED / service).glob("*.json"))
if not FILES:
    pytest.skip("the recorded exchanges are not there", allow_module_level=True)


def body(path: Path) -> tuple[dict[str, Any], str]:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    said = recorded["body"]
    return recorded, said if isinstance(said, str) else json.dumps(said)


def works(path: Path) -> list[Work]:
    """The works of an exchange, read as the client of its service reads them."""
    recorded, text = body(path)
    status, url = recorded["status"], recorded["url"]
    service = path.parent.name
    if service == "arxiv":
        return list(arxiv.read_feed(text).works)
    if service == "crossref":
        found = [crossref.read_work(status, text)] if "/works/" in url else crossref.read_works(text)
    elif service == "openalex":
        found = [openalex.read_work(status, text)] if "/works/" in url else openalex.read_works(text)
    else:
        is_list = "/search" in url
        read = semantic_scholar.read_works(status, text) if is_list else [semantic_scholar.read_work(status, text)]
        found = list(read)
    return [work for work in found if work]


BIBTEX = [path for path in FILES if "/transform/" in body(path)[0]["url"]]
UNPAYWALL = [path for path in FILES if path.parent.name == "unpaywall"]
OF_WORKS = [path for path in FILES if path not in BIBTEX and path not in UNPAYWALL]


@pytest.mark.parametrize("path", BIBTEX, ids=lambda path: path.name[:40])
def test_a_publishers_bibtex_is_read(path: Path) -> None:
    recorded, text = body(path)
    doi = unquote(recorded["url"].split("/works/")[1].split("/transform/")[0]).casefold()
    if recorded["status"] != 200:
        return
    ((entry,), problems) = bibtex.read(text)
    assert problems == []
    registered = Work("crossref", title=entry.title, doi=doi)
    assert crossref.read_bibtex(text, registered) == text.strip()
    assert crossref.read_bibtex(text, replace(registered, doi="10.1234/other")) == ""
    assert crossref.read_bibtex(text, replace(registered, title="Another work")) == ""


@pytest.mark.parametrize(
    ("title", "is_taken"),
    [
        (r"Otters {\textendash} {\'E}tude of \emph{$\alpha$-Lutra}", True),
        (r"Otters \input{/etc/passwd}", False),
        (r"Otters \immediate\write18{id}", False),
        (r"Otters \csname @@input\endcsname", False),
        (r"Otters ^^5cinput{x}", False),
    ],
)
def test_a_publishers_bibtex_does_nothing_in_latex(title: str, is_taken: bool) -> None:
    text = f"@article{{Byte_2021, title={{{title}}}, DOI={{10.1234/otters}}}}"
    ((entry,), _) = bibtex.read(text)
    registered = Work("crossref", title=entry.title, doi="10.1234/otters")
    assert crossref.read_bibtex(text, registered) == (text if is_taken else "")


@pytest.mark.parametrize("path", OF_WORKS, ids=lambda path: f"{path.parent.name}-{path.name[:40]}")
def test_an_exchange_is_read(path: Path) -> None:
    recorded, text = body(path)
    if path.name.startswith("id_abc"):
        with pytest.raises(SourceError, match=r"arXiv says: incorrect id format for abc\."):
            works(path)
        return
    found = works(path)
    empty = ('"data": []', '"items": []', "<opensearch:totalResults>0<")
    is_empty = recorded["status"] == 404 or any(mark in text for mark in empty)
    assert bool(found) is not is_empty
    has_title = "select=" not in recorded["url"] and path.parent.name != "crossref"
    for work in found:
        assert work.doi == work.doi.lower()
        assert not work.doi.startswith("10.48550/")
        assert not {"<", "\n"} & set(work.title + "".join(str(author.name) for author in work.authors))
        assert work.title or not has_title
        assert all(link.startswith("http") for link in work.pdfs)


@pytest.mark.parametrize("path", UNPAYWALL, ids=lambda path: path.name)
def test_unpaywall_is_read(path: Path) -> None:
    recorded, text = body(path)
    if "/search" in recorded["url"]:  # which Folio does not use
        with pytest.raises(SourceError, match="Unpaywall sent something that cannot be read"):
            arxiv.read_pdfs(recorded["status"], text)
    else:
        assert isinstance(arxiv.read_pdfs(recorded["status"], text), tuple)


def one(service: str, start: str) -> Work:
    (path,) = (RECORDED / service).glob(f"{start}*.json")
    return works(path)[0]


def test_a_work_of_each_service() -> None:
    of_arxiv = one("arxiv", "id_quant-ph_0201082v1")
    assert (of_arxiv.arxiv, of_arxiv.year, of_arxiv.categories) == ("quant-ph/0201082v1", 2002, ("quant-ph", "cs.PL"))
    assert of_arxiv.authors[0].name == PersonName("Blaha", "Stephen")
    assert of_arxiv.pdfs == ("https://arxiv.org/pdf/quant-ph/0201082v1",)
    nature = one("crossref", "10")
    assert nature.title == "Augmenting large language models with chemistry tools"
    venue = "Nature Machine Intelligence"
    assert (nature.doi, nature.year, nature.venue) == ("10.1038/s42256-024-00832-8", 2024, venue)
    assert (nature.volume, nature.issue, nature.pages, nature.cited) == ("6", "5", "525–535", 238)
    assert nature.authors[0].name == PersonName("M. Bran", "Andres")
    assert nature.authors[2].orcid == "0000-0003-0310-0851"
    assert nature.abstract.startswith("Large language models (LLMs) have shown strong performance")
    assert nature.licence == "https://creativecommons.org/licenses/by/4.0"
    assert nature.pdfs == ("https://www.nature.com/articles/s42256-024-00832-8.pdf",)
    preprint = one("openalex", "11")
    assert (preprint.openalex, preprint.arxiv, preprint.doi) == ("W4389761608", "2312.07559", "")
    assert (preprint.venue, preprint.kind, preprint.is_open) == ("", "article", True)
    assert preprint.authors[0].name == PersonName("Lála", "Jakub")
    assert preprint.abstract.startswith("Large Language Models (LLMs) generalize well across language tasks")
    attention = one("semanticscholar", "01")
    assert (attention.arxiv, attention.year, attention.cited) == ("1706.03762", 2017, 136941)
    assert attention.venue == "Neural Information Processing Systems"
    assert attention.kind == "paper-conference"


def test_what_two_services_say_of_one_work_is_joined() -> None:
    joined = merged([one("openalex", "08"), one("crossref", "32"), one("semanticscholar", "22")])
    assert joined.doi == "10.1016/j.addr.2015.01.008"
    assert joined.openalex == "W2033425827"
    assert joined.semanticscholar
    assert (joined.volume, joined.pages) == ("87", "46–51")
    assert len(joined.references) == 42
