"""What a deep answer rests on, over the web API: differences between papers, kept and exported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from folio import workers
from folio.web.api import make_web
from folio.web.kept_replies import as_known_now, papers_of_replies
from folio.web.request_guard import AccessRules
from folio.work_notices import WorkNotice
from tests.helpers.factories import hit_on, small_papers, write_pdf
from tests.helpers.fakes import hashing_app, read_here

LENGTH = "What length has the Aletsch glacier?"
IS_LONG = "The Aletsch glacier has a length of 23 kilometres and covers 82 square kilometres of the Bernese Alps."
IS_SHORT = "The Aletsch glacier has a length of 20 kilometres and covers 82 square kilometres of the Bernese Alps."


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Three papers, of which two give another length of one glacier."""
    app = hashing_app(tmp_path_factory.mktemp("profile"), LLM="builtin", RERANKER="builtin", CHUNK_SIZE=300)
    small_papers(app.settings.PAPERS_DIR)
    write_pdf(app.settings.PAPERS_DIR / "later.pdf", [IS_SHORT], "A Later Survey of Alpine Ice")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(workers, "run_guarded", read_here)
        app.run()
    web = make_web(app, AccessRules(host="127.0.0.1", port=8420))
    with TestClient(web, base_url="http://127.0.0.1:8420") as made:
        yield made


def said(client: TestClient, message: str, mode: str = "deep") -> dict[str, Any]:
    response = client.post("/chat", json={"message": message, "mode": mode})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_a_deep_answer_says_what_its_evidence_is_worth(client: TestClient) -> None:
    reply = said(client, LENGTH)
    profile = reply["evidence_profile"]
    assert profile["basis"]["scored"] == sum(event["event"] == "evidence" for event in reply["trace"]["events"])
    (difference,) = profile["differences"]
    quotes = [difference["some"][0]["quote"], difference["others"][0]["quote"]]
    assert sorted(" ".join(quote.split()) for quote in quotes) == sorted([IS_LONG, IS_SHORT])
    path = f"/conversations/{reply['conversation']}"
    assert client.get(path).json()["turns"] == [reply]
    exported = client.get(f"{path}/markdown").text
    assert "\n\n### About the evidence\n\nConfidence: " in exported
    assert "\n\n#### Where they differ\n\n- “The Aletsch glacier" in exported
    assert "\n\n  but\n\n  “The Aletsch glacier" in exported
    assert said(client, LENGTH, mode="quick")["evidence_profile"] is None
    assert said(client, "Who painted the Sistine chapel?")["evidence_profile"] is None


def test_a_kept_profile_says_what_became_of_its_papers(client: TestClient) -> None:
    kept = said(client, LENGTH)
    (difference,) = kept["evidence_profile"]["differences"]
    quoted = {side[0]["paper"] for side in difference.values()}
    assert quoted <= papers_of_replies([kept])
    retracted = replace(hit_on(IS_SHORT).paper, notices=(WorkNotice("retraction", "2021-03-04", "10.1234/notice"),))
    (now,) = as_known_now(kept, dict.fromkeys(quoted, retracted))["evidence_profile"]["differences"]
    for side in ("some", "others"):
        assert now[side][0]["notice"]["mark"] == "RETRACTED"
        assert ", RETRACTED, p. 1]" in now[side][0]["shown"] or ", RETRACTED p.1]" in now[side][0]["shown"]
