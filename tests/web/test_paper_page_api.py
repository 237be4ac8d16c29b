"""The page of a paper over the API, and the questions that are suggested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio.app import App
from folio.papers.work import Work
from folio.store import works
from tests.helpers.live_server import builtin_app
from tests.helpers.sectioned import CITES_OTTERS, ICE, ICE_TITLE, OTTER_TITLE, RAFT, sectioned_pdf
from tests.helpers.web_client import NOBODY, ask, client_of, json_of, papers_by_file, refusal, small_app

# The papers on seals and whales say of their own instruments what the one on otters says
OTHERS = {"seals.pdf": ("SealCam", "seals"), "whales.pdf": ("WhaleEar", "whales")}


def renamed(text: str, name: str, animals: str) -> str:
    return text.replace("OtterNet", name).replace("sea otters", animals).replace("otter", animals[:-1])


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    folder = tmp_path_factory.mktemp("about")
    sectioned_pdf(folder / "papers" / "otters.pdf", OTTER_TITLE, RAFT)
    sectioned_pdf(folder / "papers" / "ice.pdf", ICE_TITLE, ICE, CITES_OTTERS)
    for file, (name, animals) in OTHERS.items():
        sections = {heading: renamed(text, name, animals) for heading, text in RAFT.items()}
        sectioned_pdf(folder / "papers" / file, f"{name}: Counting {animals.title()} by Sound", sections)
    return builtin_app(folder, folder / "papers")


@pytest.fixture(scope="module")
def client(app: App) -> Iterator[TestClient]:
    with client_of(app) as opened:
        yield opened


@pytest.fixture(scope="module")
def ids(client: TestClient) -> dict[str, str]:
    return {file: str(paper["id"]) for file, paper in papers_by_file(client).items()}


def about(client: TestClient, paper: str) -> dict[str, Any]:
    return json_of(client.get(f"/papers/{paper}/about"))


def test_a_paper_is_described_by_its_own_sentences(client: TestClient, app: App, ids: dict[str, str]) -> None:
    found = about(client, ids["otters.pdf"])
    assert found["abstract"] == RAFT["Abstract"]
    quotes = {quote["kind"]: " ".join(quote["quote"].split()) for quote in found["quotes"]}
    assert quotes == {
        "claim": "This paper presents OtterNet, a network of buoys that counts sea otters along a coast.",
        "method": "We use buoys with two microphones and a small computer to find the places of sea otters.",
        "result": "Our results show that OtterNet counts 95 percent of the sea otters that observers see.",
        "limits": "OtterNet is limited to sea otters that open shells, so we do not count their pups.",
    }
    sections = [quote["section"] for quote in found["quotes"]]
    assert sections == ["Abstract", "§2 Methods", "§3 Results", "§4 Limitations"]
    with closing(app.open_library()) as library:
        for quote in found["quotes"]:
            assert library.text(ids["otters.pdf"], quote["start"], quote["end"]) == quote["quote"]
            assert (quote["page"], quote["label"]) == (1, "1")
    assert about(client, ids["otters.pdf"]) == found  # now from the cache


def test_a_kind_without_a_good_sentence_has_none(client: TestClient, ids: dict[str, str]) -> None:
    kinds = [quote["kind"] for quote in about(client, ids["ice.pdf"])["quotes"]]
    assert "limits" not in kinds
    assert "claim" in kinds


def test_references_are_those_of_its_pages(client: TestClient, app: App, ids: dict[str, str]) -> None:
    references = about(client, ids["ice.pdf"])["references"]
    assert [" ".join(each["text"].split()) for each in references] == [text[4:] for text in CITES_OTTERS]
    assert [(each["paper"], each["title"], each["year"]) for each in references] == [
        (ids["otters.pdf"], OTTER_TITLE, 2001),
        ("", "", 1999),
        ("", "", 1987),
    ]
    with closing(app.open_library()) as library:
        for each in references:
            assert library.text(ids["ice.pdf"], each["start"], each["end"]) == each["text"]
    citing = about(client, ids["otters.pdf"])["cited_here_by"]
    assert [(each["paper"], each["title"]) for each in citing] == [(ids["ice.pdf"], ICE_TITLE)]
    assert about(client, ids["ice.pdf"])["cited_here_by"] == []


def test_citations_that_services_know_count_too(client: TestClient, app: App, ids: dict[str, str]) -> None:
    with closing(app.open_library()) as library, library.changing_works() as database:
        seals, whales = works.put(
            database,
            [Work("openalex", title="Seals", doi="10.1/seals"), Work("openalex", title="Whales", doi="10.1/whales")],
        )
        works.link_paper(database, ids["seals.pdf"], seals, "doi", 1.0)
        works.link_paper(database, ids["whales.pdf"], whales, "doi", 1.0)
        works.add_citations(database, seals, ["doi 10.1/whales"], "openalex", works.now())
    citing = about(client, ids["whales.pdf"])["cited_here_by"]
    assert [each["paper"] for each in citing] == [ids["seals.pdf"]]


def test_similar_papers_are_the_nearest(client: TestClient, ids: dict[str, str]) -> None:
    similar = about(client, ids["otters.pdf"])["similar"]
    assert {each["paper"] for each in similar[:2]} == {ids["seals.pdf"], ids["whales.pdf"]}
    scores = [each["score"] for each in similar]
    assert scores == sorted(scores, reverse=True)
    assert ids["otters.pdf"] not in [each["paper"] for each in similar]


def test_conversations_that_cite_a_paper_are_listed(client: TestClient, ids: dict[str, str]) -> None:
    reply = ask(client, "How far apart do the buoys of OtterNet float?", listed=True)
    assert {cited["paper"] for cited in reply["citations"]} >= {ids["otters.pdf"]}
    (listed,) = about(client, ids["otters.pdf"])["conversations"]
    assert (listed["id"], listed["title"]) == (reply["conversation"], "How far apart do the buoys of OtterNet float?")
    assert about(client, ids["ice.pdf"])["conversations"] == []


def test_an_unknown_paper_has_no_page(client: TestClient) -> None:
    assert refusal(client.get(f"/papers/{NOBODY}/about"), 404) == "This paper is not in the index."


# Suggested questions


def test_examples_are_questions_that_the_papers_answer(client: TestClient) -> None:
    questions: list[str] = []
    for _ in range(5):  # a slow computer needs more than one request
        questions = questions or json_of(client.get("/examples"))["questions"]
    assert set(questions) == {"What is OtterNet?", "What is SealCam?", "What is WhaleEar?"}
    for question in questions:
        (name,) = question.removeprefix("What is ").removesuffix("?").split()
        reply = ask(client, question)
        assert not reply["refused"]
        assert f"{name} is a network of buoys" in " ".join(reply["citations"][0]["quote"].split())


def test_a_library_without_good_questions_has_no_examples(tmp_path: Path) -> None:
    with client_of(small_app(tmp_path)) as client:
        assert json_of(client.get("/examples")) == {"questions": []}


def test_followups_are_answered_from_other_passages(client: TestClient, ids: dict[str, str]) -> None:
    reply = ask(client, "How far apart do the buoys of OtterNet float?", papers=[ids["otters.pdf"]])
    address = f"/conversations/{reply['conversation']}/turns/1/followups"
    questions = json_of(client.get(address))["questions"]
    assert questions[0] == "What are the limitations of OtterNet?"
    shown = {cited["quote"] for cited in reply["citations"]}
    for question in questions:
        answer = ask(client, question)
        assert answer["citations"][0]["paper"] == ids["otters.pdf"]
        assert answer["citations"][0]["quote"] not in shown
    assert json_of(client.get(address))["questions"] == questions


def test_what_was_asked_is_not_suggested_again(client: TestClient, ids: dict[str, str]) -> None:
    reply = ask(client, "What are the limitations of OtterNet?", papers=[ids["otters.pdf"]])
    address = f"/conversations/{reply['conversation']}/turns/1/followups"
    assert "What are the limitations of OtterNet?" not in json_of(client.get(address))["questions"]


def test_only_answers_with_citations_have_followups(client: TestClient) -> None:
    reply = ask(client, "Hello")
    address = f"/conversations/{reply['conversation']}/turns/{{}}/followups"
    assert json_of(client.get(address.format(1))) == {"questions": []}
    assert refusal(client.get(address.format(2)), 404).startswith("There is no such conversation")
