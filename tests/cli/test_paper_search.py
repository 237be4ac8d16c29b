"""`query.py --papers`: ranked papers in the terminal and in JSON, with filters, and what it refuses."""

from __future__ import annotations

from tests.helpers.cli_runner import CliRunner


def test_papers_are_ranked_with_the_reason(ready: CliRunner) -> None:
    ran = ready.query("--papers", "how", "long", "is", "the", "Aletsch", "glacier")
    assert ran.code == 0
    first, why, second, _ = ran.out.splitlines()
    assert first == "1. The Aletsch Glacier"
    assert why.startswith("   alps/glaciers.pdf · ")
    assert why.endswith("its words: Aletsch, glacier · in the text: pp. 1–3")
    assert second == "2. otters.pdf  On Sea Otters"


def test_one_object_for_each_query(ready: CliRunner) -> None:
    found = ready.query("--papers", "--json", "--top-k", "1", "kelp rafts").object
    assert (found["query"], found["notice"]) == ("kelp rafts", "")
    (paper,) = found["papers"]
    assert (paper["file"], paper["match"]["label"], paper["match"]["pages"]) == ("otters.pdf", "otters.pdf", [1, 2])


def test_filters_choose_among_them(ready: CliRunner) -> None:
    found = ready.query("--papers", "--json", "--paper", "otters", "glacier").object
    assert [paper["file"] for paper in found["papers"]] == ["otters.pdf"]
