"""The API against its own OpenAPI document: responses to generated requests match it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app

schemathesis.serializer.alias("application/pdf", "application/octet-stream")
some = settings(
    max_examples=100 if EXHAUSTIVE else 15,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


_UNDESCRIBED = (
    "/papers", "/uploads", "/tables", "/tables/{table}/columns", "/backup", "/backup/{day}", "/bibliography",
    "/bibliography/preview", "/settings", "/settings/folders", "/tasks/rebuild",
)  # fmt: skip


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("web")
    with pytest.MonkeyPatch.context() as patch, Live(builtin_app(folder, small_papers(folder / "papers"))) as made:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))  # for the file of settings
        patch.setenv("HOME", str(folder))
        yield made


@pytest.fixture(scope="module")
def description(live: Live) -> Any:
    return schemathesis.openapi.from_url(f"{live.url}/openapi.json")


@pytest.fixture(scope="module")
def known(live: Live) -> dict[str, str]:
    """Ids that exist."""
    with live.client() as client:
        paper = client.get("/papers").json()["papers"][0]["id"]
        conversation = client.post("/chat", json={"message": "How do sea otters sleep?"}).json()["conversation"]
    return {"paper": paper, "conversation": conversation}


def operations(description: Any) -> list[Any]:
    return [found.ok() for found in description.get_all_operations()]


def test_every_route_is_described(description: Any) -> None:
    assert len(operations(description)) == len({(one.method, one.path) for one in operations(description)}) == 126


def ends_before_it_begins(case: Any) -> bool:
    """Whether a request has years such as 2020-2010."""
    sent = json.dumps([case.body, case.query], default=repr, ensure_ascii=False)
    return any(int(first) > int(last) for first, last in re.findall(r"(\d+)\s*[-\u2013\u2014]\s*(\d+)", sent))


@pytest.mark.slow
def test_responses_to_generated_requests_match_the_document(description: Any) -> None:
    for operation in operations(description):
        if operation.path == "/events":  # its response does not end: tests/web/test_events.py
            continue

        @some
        @given(case=operation.as_strategy())
        def check(case: Any) -> None:
            # A schema cannot describe what makes a file a PDF, or which units are known.
            # Nor that a range of years does not end before it begins.
            undescribed = case.operation.path in _UNDESCRIBED or ends_before_it_begins(case)
            # Nor which folders there are, what a setting may be, or that no task is running.
            undescribed = case.operation.path in _UNDESCRIBED or ends_before_it_begins(case)
            refused = [positive_data_acceptance] if undescribed else []
            response = case.call_and_validate(excluded_checks=[not_a_server_error, *refused])
            # 503: the request names a model that is not served.
            named = isinstance(case.body, dict) and (case.body.get("model") or case.body.get("changes"))
            assert response.status_code < 500 or (response.status_code == 503 and named)

        check()


@pytest.mark.slow
def test_responses_for_existing_ids_match_the_document(description: Any, known: dict[str, str]) -> None:
    for operation in operations(description):
        if operation.method.upper() != "GET" or "{" not in operation.path:
            continue

        @some
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE))
        def check(case: Any) -> None:
            case.path_parameters = {**case.path_parameters, **known}
            # The check takes ids that schemathesis did not generate for invalid ones.
            case.call_and_validate(excluded_checks=[negative_data_rejection])

        check()


@pytest.mark.slow
def test_the_server_still_works_afterwards(live: Live) -> None:
    with live.client() as client:
        assert client.get("/health").json()["status"] == "ready"
        reply = client.post("/chat", json={"message": "How do sea otters sleep?"}).json()
    assert reply["sources_used"] == ["otters.pdf"]
