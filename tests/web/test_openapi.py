"""The API against its own description: whatever it is sent, it answers as it says it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.helpers.factories import small_papers
from tests.helpers.live_server import Live, builtin_app

some = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("web")
    with Live(builtin_app(folder, small_papers(folder / "papers"))) as made:
        yield made


@pytest.fixture(scope="module")
def description(live: Live) -> Any:
    return schemathesis.openapi.from_url(f"{live.url}/openapi.json")


@pytest.fixture(scope="module")
def known(live: Live) -> dict[str, str]:
    """Ids that there are."""
    with live.client() as client:
        paper = client.get("/papers").json()["papers"][0]["id"]
        conversation = client.post("/chat", json={"message": "How do sea otters sleep?"}).json()["conversation"]
    return {"paper": paper, "conversation": conversation}


def operations(description: Any) -> list[Any]:
    return [found.ok() for found in description.get_all_operations()]


def test_every_address_is_described(description: Any) -> None:
    assert len(operations(description)) == len({(one.method, one.path) for one in operations(description)}) == 15


@pytest.mark.slow
def test_whatever_is_sent_is_answered_as_described(description: Any) -> None:
    for operation in operations(description):

        @some
        @given(case=operation.as_strategy())
        def answered(case: Any) -> None:
            # What makes a file a PDF, a schema cannot say.
            refused = [positive_data_acceptance] if case.operation.path == "/papers" else []
            response = case.call_and_validate(excluded_checks=[not_a_server_error, *refused])
            # 503: a model that nobody serves was asked for.
            assert response.status_code < 500 or (response.status_code == 503 and case.body.get("model"))

        answered()


@pytest.mark.slow
def test_what_is_there_is_told_as_described(description: Any, known: dict[str, str]) -> None:
    for operation in operations(description):
        if operation.method.upper() != "GET" or "{" not in operation.path:
            continue

        @some
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE))
        def told(case: Any) -> None:
            case.path_parameters = {**case.path_parameters, **known}
            # It takes ids that it did not make itself for wrong ones.
            case.call_and_validate(excluded_checks=[negative_data_rejection])

        told()


@pytest.mark.slow
def test_after_all_that_it_still_works(live: Live) -> None:
    with live.client() as client:
        assert client.get("/health").json()["status"] == "ready"
        reply = client.post("/chat", json={"message": "How do sea otters sleep?"}).json()
    assert reply["sources_used"] == ["otters.pdf"]
