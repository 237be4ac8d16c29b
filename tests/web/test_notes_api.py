"""Notes over the API: kept, found, changed, exported, and hostile ones."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.enum.text import WD_COLOR_INDEX
from fastapi.testclient import TestClient
from markdown_it import MarkdownIt

from folio.papers.metadata import Field, Metadata
from folio.text import one_line
from tests.helpers.fakes import HashingApp, hashing_app
from tests.helpers.web_client import NOBODY, ask, client_of, json_of, papers_by_file, refusal

FUR = "No other mammal has a denser fur."
HOSTILE = "<script>alert(1)</script> [x](javascript:x) ]]> &amp; # \u202eABC\x00\x1b[31m\ufffe *b* `c`\n---\n> | $ @"


@pytest.fixture
def papers(client: TestClient) -> dict[str, str]:
    """The ids of the papers, by their files."""
    return {file: paper["id"] for file, paper in papers_by_file(client).items()}


def add(client: TestClient, *quotes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return json_of(client.post("/notes", json={"quotes": list(quotes), **more}), 201)


def listed(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    reply = json_of(client.get("/notes", params=query))
    assert reply["count"] == len(reply["notes"])
    return list(reply["notes"])


def test_a_note_is_added_listed_changed_and_deleted(client: TestClient, papers: dict[str, str]) -> None:
    otters = papers["otters.pdf"]
    note = add(client, {"paper": otters, "quote": "no other mammal has a denser  fur"}, colour="pink", text="Really?")
    (quote,) = note["quotes"]
    assert (one_line(quote["quote"]), quote["page"], quote["label"], quote["place"]) == (FUR[:-1], 1, "1", "here")
    assert (note["paper"], note["file"], note["title"]) == (otters, "otters.pdf", "On Sea Otters")
    assert (note["colour"], note["text"], note["statement"], note["zotero"]) == ("pink", "Really?", "", "")
    assert (note["conversation"], note["turn"]) == (None, None)
    span = {"paper": otters, "start": quote["start"], "end": quote["end"] + 1}
    assert one_line(add(client, span)["quotes"][0]["quote"]) == FUR
    json_of(client.patch(f"/notes/{note['id']}", json={"text": "Yes."}))
    changed = json_of(client.patch(f"/notes/{note['id']}", json={"colour": ""}))
    assert (changed["text"], changed["colour"], changed["created"]) == ("Yes.", "", note["created"])
    assert listed(client, query="yes")[0] == changed
    other = client.patch(f"/notes/{note['id']}", json={"text": "No.", "before": "Really?"})
    assert refusal(other, 409) == "This note was changed elsewhere meanwhile. It is now: “Yes.”."
    assert listed(client, query="yes")[0] == changed
    assert json_of(client.patch(f"/notes/{note['id']}", json={"text": "Yes!", "before": "Yes."}))["text"] == "Yes!"
    assert client.delete(f"/notes/{note['id']}").status_code == 204
    assert [each["text"] for each in listed(client)] == [""]
    for reply in (
        client.delete(f"/notes/{note['id']}"),
        client.patch(f"/notes/{note['id']}", json={"text": ""}),
        client.post("/notes.md", json={"ids": [note["id"]]}),
    ):
        assert refusal(reply, 404) == "There is no such note."


def test_a_place_that_a_person_saw_in_an_older_text_is_looked_for_by_its_words(
    client: TestClient, papers: dict[str, str]
) -> None:
    otters = papers["otters.pdf"]
    stored = add(client, {"paper": otters, "quote": "rafts of kelp"})["quotes"][0]
    stale = {"paper": otters, "start": stored["start"] + 9, "end": stored["end"] + 9}
    assert add(client, {**stale, "quote": "rafts of kelp"})["quotes"] == [stored]
    reply = client.post("/notes", json={"quotes": [{**stale, "quote": "rafts of ice"}]})
    assert "no words “rafts of ice” any more" in refusal(reply, 400)


def test_a_chosen_note_is_exported_once(client: TestClient, papers: dict[str, str]) -> None:
    note = add(client, {"paper": papers["otters.pdf"], "quote": "rafts of kelp"})
    assert client.post("/notes.md", json={"ids": [note["id"]] * 1000}).text.count("rafts of kelp") == 1


def test_notes_are_filtered_sorted_and_cut(client: TestClient, papers: dict[str, str]) -> None:
    otters, glaciers = papers["otters.pdf"], papers["alps/glaciers.pdf"]
    add(client, {"paper": otters, "quote": "urchins, clams"}, text="two", colour="blue")
    add(client, {"paper": glaciers, "quote": "Blatten"}, text="three")
    add(client, {"paper": otters, "quote": "rafts of kelp"}, text="one")

    def texts(**query: Any) -> list[str]:
        return [note["text"] for note in listed(client, **query)]

    assert texts() == ["one", "two", "three"]
    assert texts(order="created") == ["one", "three", "two"]
    assert texts(order="paper") == ["two", "one", "three"]
    assert texts(paper=otters) == ["one", "two"]
    assert texts(colour="blue") == ["two"]
    assert texts(colour="") == ["one", "three"]
    assert texts(query="otters KELP") == ["one"]
    cut = json_of(client.get("/notes", params={"limit": 1, "offset": 1}))
    assert (cut["count"], [note["text"] for note in cut["notes"]]) == (3, ["two"])
    assert client.get("/notes.md", params={"query": "kelp"}).text.count("> “") == 1
    for wrong in ({"order": "size"}, {"colour": "red"}, {"paper": "x"}, {"limit": 0}, {"more": 1}):
        assert client.get("/notes", params=wrong).status_code == 422, wrong


def test_a_place_that_a_paper_does_not_have_is_refused(client: TestClient, papers: dict[str, str]) -> None:
    otters = papers["otters.pdf"]
    for quote, status, error in (
        ({"paper": otters, "quote": "tigers"}, 400, "The paper has no words “tigers”."),
        ({"paper": otters, "quote": "otter"}, 400, "The paper has the words “otter” 4 times, on pages 1, 2."),
        (
            {"paper": otters, "quote": "otter", "page": 1},
            400,
            "Page 1 of the paper has the words “otter” 2 times, on page 1.",
        ),
        ({"paper": otters, "quote": " "}, 400, "The paper has no words “”."),
        ({"paper": otters, "start": 5, "end": 5}, 400, "There are no words at this place of the paper."),
        ({"paper": otters, "start": 9, "end": 2**40}, 400, "There are no words at this place of the paper."),
        ({"paper": NOBODY, "quote": "fur"}, 404, "This paper is not in the index."),
        ({"paper": otters, "start": -1, "end": 5}, 422, "quotes"),
        ({"paper": otters}, 422, "quotes"),
        ({"paper": otters, "page": 99}, 404, "The paper has no page 99."),
        ({"paper": otters, "page": 0, "area": [1, 1, 2, 2]}, 400, "There is no such area on a page of the paper."),
        ({"paper": otters, "page": 1, "area": [9, 1, 9, 2]}, 400, "There is no such area on a page of the paper."),
        ({"paper": otters, "page": 1, "area": [1, 1, 2]}, 422, "quotes"),
    ):
        assert error in refusal(client.post("/notes", json={"quotes": [quote]}), status), quote
    assert client.post("/notes", json={"quotes": []}).status_code == 422
    fur = {"paper": otters, "quote": FUR}
    assert client.post("/notes", json={"quotes": [fur], "text": "x" * 50_001}).status_code == 422
    assert listed(client) == []
    assert add(client, {"paper": otters, "quote": "otter eats", "page": 2})["quotes"][0]["page"] == 2


def test_a_note_is_on_a_page_an_area_of_it_or_the_whole_paper(client: TestClient, papers: dict[str, str]) -> None:
    otters = papers["otters.pdf"]
    area = [72.0, 90.5, 300.0, 200.0]
    places: list[dict[str, Any]] = [{"page": 0}, {"page": 2}, {"page": 2, "area": area}]
    made = [add(client, {"paper": otters, **place}, text=f"{place}", colour="blue") for place in places]
    found = [note["quotes"][0] for note in listed(client, paper=otters)]
    assert [(quote["page"], quote["label"], quote["quote"], quote["area"], quote["place"]) for quote in found] == [
        (0, "", "", None, "here"),
        (2, "2", "", None, "here"),
        (2, "2", "", area, "here"),
    ]
    exported = client.get("/notes.md").text
    assert "“" not in exported
    assert re.findall(r"^> (.*?)\.? \[Open", exported, re.M) == ["the whole paper", "p. 2", "an area of p. 2"]
    texts = [paragraph.text for paragraph in docx.Document(BytesIO(client.get("/notes.docx").content)).paragraphs]
    assert [text for text in texts if "Open in Folio" in text] == [
        "the whole paper. Open in Folio",
        "p. 2. Open in Folio",
        "an area of p. 2. Open in Folio",
    ]
    changed = json_of(client.patch(f"/notes/{made[2]['id']}", json={"text": "So."}))
    assert changed["quotes"] == made[2]["quotes"]
    assert client.delete(f"/papers/{otters}").status_code == 200
    assert [note["quotes"][0]["place"] for note in listed(client)] == ["removed"] * 3


def test_a_statement_of_an_answer_is_kept_with_its_quotes(client: TestClient) -> None:
    replies = [ask(client, "How do sea otters sleep?")]
    replies.append(ask(client, "What do they eat?", conversation=replies[0]["conversation"]))
    sentence = replies[0]["sentences"][0]
    quotes = [
        {"paper": cited["paper"], "quote": cited["quote"], "page": cited["page"]} for cited in sentence["citations"]
    ]
    place = {"conversation": replies[0]["conversation"], "turn": 1}
    note = add(client, *quotes, statement=sentence["text"], **place)
    assert (note["statement"], note["turn"]) == (sentence["text"], 1)
    assert [quote["quote"] for quote in note["quotes"]] == [cited["quote"] for cited in sentence["citations"]]
    assert client.delete(f"/conversations/{note['conversation']}").status_code == 204
    assert listed(client) == [{**note, "conversation": None, "turn": None}]


def test_a_note_stays_when_its_paper_is_removed(client: TestClient, papers: dict[str, str]) -> None:
    note = add(client, {"paper": papers["otters.pdf"], "quote": FUR}, text="Mine.")
    assert client.delete(f"/papers/{papers['otters.pdf']}").status_code == 200
    (kept,) = listed(client)
    assert kept == {**note, "quotes": [{**note["quotes"][0], "place": "removed"}]}
    exported = client.get("/notes.md").text
    assert "*The paper was removed from the library.*" in exported
    assert "#paper/" not in exported
    assert client.get("/notes.bib").text == "% The paper was removed from the library. On Sea Otters\n"


def test_exports_have_links_to_the_pages(client: TestClient, app: HashingApp, papers: dict[str, str]) -> None:
    otters, glaciers = papers["otters.pdf"], papers["alps/glaciers.pdf"]
    with closing(app.open_library()) as library:
        zotero = Metadata(zotero=Field("library/items/ABCD2345", "zotero", True))
        library.set_metadata(glaciers, "zotero", zotero)
    fur = add(client, {"paper": otters, "quote": FUR}, {"paper": glaciers, "quote": "Blatten"}, colour="green")
    massa = add(client, {"paper": glaciers, "quote": "the river Massa"}, text="Where?\nThere.\n\nSo.")
    assert massa["zotero"] == "zotero://open-pdf/library/items/ABCD2345?page=3"
    assert [quote["file"] for quote in fur["quotes"]] == ["otters.pdf", "alps/glaciers.pdf"]
    assert fur["quotes"][0]["title"] == "On Sea Otters" != fur["quotes"][1]["title"]
    start, end = fur["quotes"][0]["start"], fur["quotes"][0]["end"]
    page = "http://127.0.0.1:8420/#paper"
    folio = [f"{page}/{otters}/p/1?from={start}&to={end}&note={fur['id']}"]
    folio += [f"{page}/{note['quotes'][-1]['paper']}/p/3?from=" for note in (fur, massa)]

    reply = client.post("/notes.md", json={"ids": [massa["id"], fur["id"]]})
    assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
    assert 'filename="folio-notes.md"' in reply.headers["content-disposition"]
    headings = [line for line in reply.text.splitlines() if line.startswith("#")]
    assert headings == ["# Notes", "## The Aletsch Glacier", "## On Sea Otters"]
    links = re.findall(r"\]\(([^)]*)\)", reply.text)
    assert [link for link in links if link.startswith("zotero")] == [massa["zotero"]] * 2
    assert links[2] == folio[0]
    assert "> The Aletsch Glacier, p. 3. [Open in Folio]" in reply.text
    assert "Where?\\\nThere.\n\nSo.\n" in reply.text

    reply = client.get("/notes.docx")
    assert reply.headers["content-type"].endswith("wordprocessingml.document")
    document = docx.Document(BytesIO(reply.content))
    texts = [paragraph.text for paragraph in document.paragraphs]
    assert texts == [
        "Notes",
        "On Sea Otters",
        f"“{FUR}”",
        "p. 1. Open in Folio",
        "“Blatten”",
        "The Aletsch Glacier, p. 3. Open in Folio Open in Zotero",
        "The Aletsch Glacier",
        "“the river Massa”",
        "p. 3. Open in Folio Open in Zotero",
        "Where?\nThere.",
        "So.",
    ]
    styled = [(paragraph.text[:2], paragraph.style and paragraph.style.name) for paragraph in document.paragraphs]
    assert [text for text, style in styled if style == "Quote"] == [
        "“N",
        "“B",
        "“t",
    ]
    assert document.paragraphs[2].runs[0].font.highlight_color == WD_COLOR_INDEX.BRIGHT_GREEN
    in_word = [link.address for paragraph in document.paragraphs for link in paragraph.hyperlinks]
    assert in_word[0] == folio[0]
    assert in_word[1].startswith(folio[1])
    assert in_word[2] == massa["zotero"]
    assert document.core_properties.author == ""


def test_the_keys_of_the_bibliography_are_those_of_the_library(client: TestClient, papers: dict[str, str]) -> None:
    for paper in papers.values():
        edits = {"title": "Ice", "authors": ["Bo Li"], "year": 2020}
        json_of(client.patch(f"/papers/{paper}", json=edits))
    add(client, {"paper": papers["alps/glaciers.pdf"], "quote": "Blatten"})
    add(client, {"paper": papers["alps/glaciers.pdf"], "quote": "Massa"})
    (entry,) = re.findall(r"@misc\{.*?\n\}\n", client.get("/notes.bib").text, re.S)
    assert entry in client.get("/papers.bib").text
    assert entry.startswith("@misc{li2020ice")
    alone = client.get("/papers.bib", params={"papers": papers["alps/glaciers.pdf"]}).text
    assert entry in alone  # its key is the same whatever is exported
    assert "li2020ice," in alone


@pytest.mark.parametrize("text", [HOSTILE, "ب" * 10_000, "x" * 50_000, "\ud800\U000e0001"])
def test_hostile_text_is_only_text(client: TestClient, papers: dict[str, str], text: str) -> None:
    json_of(client.patch(f"/papers/{papers['otters.pdf']}", json={"title": "<b>T</b> [x](javascript:x) ]]> # *b* `c`"}))
    body = {"quotes": [{"paper": papers["otters.pdf"], "quote": FUR}], "text": text, "statement": text}
    reply = client.post("/notes", content=json.dumps(body), headers={"Content-Type": "application/json"})
    if "\ud800" in text:  # no text in JSON
        assert reply.status_code == 422
        return
    note = json_of(reply, 201)
    assert note["text"] == text.replace("\0", "\ufffd")
    tokens = MarkdownIt("commonmark").parse(client.get("/notes.md").text)
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or ()}
    assert not kinds & {"html_block", "html_inline", "code_block", "fence", "code_inline", "image", "list_item_open"}
    links = [child for token in tokens for child in token.children or () if child.type == "link_open"]
    assert [str(link.attrs["href"]).partition(":")[0] for link in links] == ["http"]
    assert sum(token.type == "heading_open" for token in tokens) == 2
    document = docx.Document(BytesIO(client.get("/notes.docx").content))
    shown = "\n".join(paragraph.text for paragraph in document.paragraphs)
    assert shown.count("alert(1)" if text == HOSTILE else text) >= 2
    assert not re.search(r"[\x00-\x08\x0e-\x1f\u202e]", shown)


def test_several_clients_write_at_once(client: TestClient, papers: dict[str, str]) -> None:
    fur = {"paper": papers["otters.pdf"], "quote": FUR}
    note = add(client, fur)

    def write(number: int) -> None:
        add(client, fur, text=str(number))
        json_of(client.patch(f"/notes/{note['id']}", json={"text": str(number)}))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(12)))
    texts = sorted(int(each["text"]) for each in listed(client) if each["id"] != note["id"])
    assert texts == list(range(12))


def test_without_an_index_there_are_no_notes(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    with client_of(hashing_app(tmp_path, LLM="builtin", RERANKER="builtin")) as client:
        assert listed(client) == []
        assert client.get("/notes.md").text == "# Notes\n"
        assert client.get("/notes.bib").text == ""
        reply = client.post("/notes", json={"quotes": [{"paper": NOBODY, "quote": "x"}]})
        assert "There is no index" in refusal(reply, 409)


def test_a_search_shows_what_is_marked_in_its_passages(client: TestClient, papers: dict[str, str]) -> None:
    def noted() -> list[str]:
        hits = json_of(client.post("/search", json={"query": "sea otters fur"}))["hits"]
        return [one_line(hit["text"][start:end]) for hit in hits for start, end in hit["noted"]]

    before = json_of(client.post("/search", json={"query": "sea otters fur"}))["hits"]
    assert noted() == []
    add(client, {"paper": papers["otters.pdf"], "quote": FUR[:-1]}, colour="pink")
    add(client, {"paper": papers["otters.pdf"], "page": 1})  # without words
    assert noted() == [FUR[:-1]]
    after = json_of(client.post("/search", json={"query": "sea otters fur"}))["hits"]
    assert [hit["score"] for hit in after] == [hit["score"] for hit in before]  # nothing is ranked by it
