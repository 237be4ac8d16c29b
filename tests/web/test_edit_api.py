"""What the API says of a paper's fields, and how they are corrected: replies, errors, the guard, other requests."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.papers.metadata import FIELDS, Field, Metadata
from folio.papers.work import Work
from folio.store import indexes, works
from tests.helpers.fakes import HashingApp
from tests.helpers.web_client import NOBODY, TOKEN, client_of, json_of, papers_by_file, refusal


@pytest.fixture
def otters(client: TestClient) -> str:
    """The id of the paper on otters."""
    return str(papers_by_file(client)["otters.pdf"]["id"])


def listed(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    return list(papers_by_file(client, **query).values())


def edit(client: TestClient, paper: str, **fields: Any) -> dict[str, Any]:
    return json_of(client.patch(f"/papers/{paper}", json=fields))


def test_every_field_has_its_origin_and_whether_it_is_sure(client: TestClient, otters: str) -> None:
    found = client.get(f"/papers/{otters}").json()
    assert found["fields"].keys() == set(FIELDS)
    assert found["fields"]["title"] == {"value": "On Sea Otters", "origin": "pdf metadata", "sure": False}
    assert found["fields"]["year"] == {"value": None, "origin": "", "sure": False}
    assert found["fields"]["authors"] == {"value": [], "origin": "", "sure": False}
    assert (found["files"], found["sections"], found["unsure"]) == (["otters.pdf"], [], ["title"])


def test_fields_are_set_emptied_and_reset(client: TestClient, otters: str) -> None:
    people = [{"family": "Otter", "given": "Ann"}, "Bo Seal", "{The Otter Society}"]
    found = edit(client, otters, title=" Kelp  Rafts ", authors=people, year=2014, doi="https://doi.org/10.1000/kelp")
    assert (found["title"], found["year"], found["doi"], found["unsure"]) == ("Kelp Rafts", 2014, "10.1000/kelp", [])
    assert found["authors"] == ["Ann Otter", "Bo Seal", "The Otter Society"]
    assert found["fields"]["authors"] == {
        "value": [
            {"family": "Otter", "given": "Ann"},
            {"family": "Seal", "given": "Bo"},
            {"family": "The Otter Society", "given": ""},
        ],
        "origin": "person",
        "sure": True,
    }
    assert "2014" in found["bibtex"]
    assert "Kelp Rafts" in found["reference"]
    found = edit(client, otters, title=None, authors=[], year="", tags=["to read"])
    assert found["fields"]["title"]["origin"] == "pdf metadata"
    assert found["fields"]["authors"] == {"value": [], "origin": "person", "sure": True}
    assert found["fields"]["year"] == {"value": None, "origin": "person", "sure": True}
    assert (found["doi"], found["fields"]["tags"]["value"]) == ("10.1000/kelp", ["to read"])
    assert edit(client, otters) == found  # nothing named, nothing changed
    assert client.get(f"/papers/{otters}").json() == found


def test_a_citation_key_is_one_papers(client: TestClient, otters: str) -> None:
    made = client.get(f"/papers/{otters}").json()
    assert made["citation_key"] == "otters"  # of the file: the title is not sure
    assert made["bibtex"].count("@misc{otters,") == 1
    assert edit(client, otters, title="Kelp Rafts", year=2014)["citation_key"] == "otters"
    assert client.get("/papers.bib", params={"papers": otters}).text.count("@misc{otters,") == 1
    chosen = edit(client, otters, citation_key="Kelp14")
    assert (chosen["citation_key"], chosen["fields"]["citation_key"]["origin"]) == ("Kelp14", "person")
    glaciers = str(papers_by_file(client)["alps/glaciers.pdf"]["id"])
    for refused in (
        client.patch(f"/papers/{glaciers}", json={"citation_key": "kelp14"}),
        client.post("/papers/edits", json={"papers": [glaciers], "edits": {"citation_key": "kelp14"}}),
    ):
        assert refused.status_code == 400
        assert refused.json()["error"] == "The citation key kelp14 is that of otters.pdf."


def test_an_edit_is_seen_by_search_answers_and_the_record(client: TestClient, app: HashingApp, otters: str) -> None:
    assert client.post("/search", json={"query": "Zanzibar"}).json()["hits"] == []  # readers are open
    edit(client, otters, title="Zanzibar and its otters", year=2014)
    hit = client.post("/search", json={"query": "Zanzibar"}).json()["hits"][0]
    assert (hit["title"], hit["bm25"] is not None) == ("Zanzibar and its otters", True)
    reply = client.post("/chat", json={"message": "How do sea otters sleep?"}).json()
    assert {cited["title"] for cited in reply["citations"]} == {"Zanzibar and its otters"}
    record = json.loads(app.settings.INGESTED_JSON.read_text(encoding="utf-8"))
    assert {entry["file"]: entry["year"] for entry in record} == {"alps/glaciers.pdf": None, "otters.pdf": 2014}
    assert app.verify() == []


def test_papers_are_chosen_by_what_they_have(client: TestClient, otters: str) -> None:
    edit(
        client, otters, authors=["Otter, Ann"], year=2014, venue="Journal of Otters", title="On Sea Otters",
        tags=["to read", "furs"],
    )  # fmt: skip
    for query in (
        {"author": "ann otter"}, {"author": ["otter", "A. Otter"]}, {"year": "2014"}, {"year": ["1999", "2010-2015"]},
        {"year": "-2014"}, {"venue": "otters"}, {"tag": "To Read"},
        {"year": "2014-", "warnings": False, "unsure": False},
    ):  # fmt: skip
        assert [paper["file"] for paper in listed(client, **query)] == ["otters.pdf"], query
    assert listed(client, year="2015-") == listed(client, warnings=True) == listed(client, section="methods") == []
    assert len(listed(client)) == 2
    for query in ({"year": "20"}, {"year": "٢٠١٤"}, {"author": ""}, {"colour": "red"}, {"warnings": "perhaps"}):
        assert refusal(client.get("/papers", params=query), 422).startswith(next(iter(query)))
    refused = refusal(client.get("/papers", params={"tag": "fur"}), 404)
    assert refused == "No paper in the index has the tag “fur”. Similar names: furs."


def test_tags_and_collections_choose_what_is_asked(client: TestClient, app: HashingApp, otters: str) -> None:
    edit(client, otters, tags=["to read"])
    with closing(app.open_library()) as library:
        zotero = Metadata(collections=Field(("Animals/Sea",), "zotero", True))
        library.change_metadata(otters, "zotero", lambda before: zotero)
    (found,) = listed(client, collection="animals")
    assert (found["tags"], found["collections"]) == (["to read"], ["Animals/Sea"])
    for given in ({"tag": ["to read"]}, {"collection": ["Sea"]}, {"collection": ["Animals/Sea"], "tag": ["To Read"]}):
        hits = client.post("/search", json={"query": "How long is the glacier?", **given}).json()["hits"]
        assert {hit["file"] for hit in hits} == {"otters.pdf"}
        for path in ("/chat", "/chat/stream"):
            reply = client.post(path, json={"message": "How do sea otters sleep?", **given})
            assert reply.status_code == 200
            assert "glaciers.pdf" not in reply.text
            assert "otters.pdf" in reply.text
    refused = refusal(client.post("/chat", json={"message": "x", "collection": ["Animal"]}), 404)
    assert refused.startswith("No paper in the index is in a collection called “Animal”. Similar names: Animals")


def test_what_a_paper_cites_is_asked(client: TestClient, app: HashingApp, otters: str) -> None:
    given = {"cited_by": ["otters.pdf"]}
    refused = refusal(client.post("/search", json={"query": "ice", **given}), 404)
    assert refused == "What “otters.pdf” cites is not known yet."
    (glaciers,) = (paper["id"] for paper in listed(client) if paper["id"] != otters)
    citing = Work("openalex", title="On Otters", openalex="W1", references=("W2",))
    cited = Work("openalex", title="Glaciers", openalex="W2")
    with closing(app.open_library()) as library, library.database.transaction():
        for paper, work in zip((otters, glaciers), works.put(library.database, [citing, cited]), strict=True):
            works.link_paper(library.database, paper, work, "title", 1.0)
    (only,) = (paper["file"] for paper in listed(client, cited_by="otters"))
    assert only.endswith("glaciers.pdf")
    hits = client.post("/search", json={"query": "How do sea otters sleep?", **given}).json()["hits"]
    assert {hit["file"] for hit in hits} == {only}
    for path in ("/chat", "/chat/stream"):
        reply = client.post(path, json={"message": "How long is the glacier?", **given})
        said = reply.text.replace('"cited_by":["otters.pdf"]', "").replace("cited by otters.pdf", "")  # what was asked
        assert (reply.status_code, "otters.pdf" in said) == (200, False)


def test_copied_bibtex_is_the_publishers_until_a_person_edits(client: TestClient, app: HashingApp, otters: str) -> None:
    written = "@article{Otter_2021, title={Otters}, ISSN={1234-5678}, month=may }"
    work = Work("crossref", title="Otters", doi="10.1234/otters", bibtex=written)
    said = Metadata(title=Field("Otters", "crossref", True), doi=Field("10.1234/otters", "crossref", True))
    with closing(app.open_library()) as library:
        with library.database.transaction():
            works.link_paper(library.database, otters, works.put(library.database, [work])[0], "doi", 1.0)
        library.set_metadata(otters, "online", said)
    assert "ISSN={1234-5678}, month=may" in client.get(f"/papers/{otters}").json()["bibtex"]
    assert "ISSN={1234-5678}, month=may" in client.get("/papers.bib").text
    assert "ISSN" not in edit(client, otters, volume="7")["bibtex"]
    assert "ISSN" not in client.get("/papers.bib").text


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"year": 3014}, 400, "The year 3014 is not between 1400 and "),
    ({"doi": "otters"}, 400, "“otters” cannot be the field doi."),
    ({"title": "a\x00b"}, 400, "The field title has characters that cannot be shown."),
    ({"authors": ["Otter, Ann, Seal, Bo"]}, 400, "“Otter, Ann, Seal, Bo” is not the name of one author."),
    ({"title": "x" * 1001}, 400, "The field title is longer than 1,000 characters."),
    *(({name: value}, 422, name) for name, value in (
        ("year", 2014.5), ("year", 1399), ("title", 5), ("title", "x" * 20_001), ("authors", [{"given": "Ann"}]),
        ("authors", "Otter, Ann"), ("collections", ["x"]), ("zotero", "library/items/A"),
    )),
]  # fmt: skip


def test_what_cannot_be_is_refused_and_changes_nothing(client: TestClient, otters: str) -> None:
    before = client.get(f"/papers/{otters}").json()
    for fields, status, error in REFUSED:
        response = client.patch(f"/papers/{otters}", json={"venue": "Journal of Otters", **fields})
        assert refusal(response, status).startswith(error)
    assert client.get(f"/papers/{otters}").json() == before
    assert refusal(client.patch(f"/papers/{NOBODY}", json={"year": 2014}), 404) == "This paper is not in the index."
    assert refusal(client.patch("/papers/otters", json={"year": 2014}), 422).startswith("paper")


def test_another_site_cannot_edit(client: TestClient, otters: str) -> None:
    for name, value, status in (
        ("Origin", "http://evil.example", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Content-Type", "text/plain", 415),
        ("Host", "evil.example:8420", 403),
    ):
        refusal(client.patch(f"/papers/{otters}", content='{"year": 2014}', headers={name: value}), status)
    assert client.get(f"/papers/{otters}").json()["year"] is None


def test_an_edit_needs_the_token(app: HashingApp) -> None:
    with client_of(app, TOKEN) as client:
        key = {"Authorization": f"Bearer {TOKEN}"}
        paper = client.get("/papers", headers=key).json()["papers"][0]["id"]
        for headers, status in (({}, 401), ({"Authorization": "Bearer x"}, 401), (key, 200)):
            assert client.patch(f"/papers/{paper}", json={"year": 2014}, headers=headers).status_code == status


def test_an_edit_while_another_process_writes_works(client: TestClient, app: HashingApp, otters: str) -> None:
    with indexes.writing(app.store_folder):
        assert edit(client, otters, year=2014)["year"] == 2014
    assert list(papers_by_file(client, year="2014")) == ["otters.pdf"]


def test_edits_at_once_are_all_kept(client: TestClient, app: HashingApp, otters: str) -> None:
    fields: list[dict[str, Any]] = [{"title": "Zanzibar"}, {"year": 2014}, {"venue": "A"}, {"doi": "10.1000/a"}]
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda field: client.patch(f"/papers/{otters}", json=field).status_code, fields * 3))
    assert set(replies) == {200}
    found = client.get(f"/papers/{otters}").json()
    assert (found["title"], found["year"], found["venue"], found["doi"]) == ("Zanzibar", 2014, "A", "10.1000/a")
    answer = client.post("/search", json={"query": "Zanzibar"}).json()
    assert "hits" in answer, answer
    assert answer["hits"][0]["bm25"] is not None


# Papers ranked for a query


def test_papers_are_ranked_for_a_query_and_say_why(client: TestClient, otters: str) -> None:
    best, other = listed(client, query="otters that float in kelp")
    assert (best["file"], best["match"]["words"]) == ("otters.pdf", ["otters"])
    assert best["match"]["score"] > other["match"]["score"]
    assert best["match"]["pages"] in ([1, 1], [2, 2])
    assert best["match"]["label"] == best["file"]
    assert listed(client, query="otters", limit=1, offset=1)[0]["file"] != "otters.pdf"
    assert listed(client, query="otters", year="1999") == []
    assert [paper["match"] for paper in listed(client, limit=1)] == [None]


def test_an_edit_counts_at_once_in_the_ranking(client: TestClient, otters: str) -> None:
    assert listed(client, query="Zanzibar") == []
    edit(client, otters, abstract="Found in Zanzibar.")
    found = client.get("/papers", params={"query": "Zanzibar"}).json()
    assert (found["papers"][0]["file"], found["papers"][0]["match"]["words"]) == ("otters.pdf", ["Zanzibar"])
    assert found["notice"].startswith("1 paper has no vector of the title, abstract and headings known now.")


def test_a_page_of_papers_has_bounds(client: TestClient) -> None:
    for query in ({"limit": 0}, {"limit": 1001}, {"offset": -1}, {"query": "x" * 501}):
        refusal(client.get("/papers", params=query), 422)
