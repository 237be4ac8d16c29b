"""`folio check` and `folio cite`, as an author runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from folio.cli import main as folio
from folio.schema.drafts import CheckedDraftJson, SentenceCitationJson
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf

GOOD = "The Aletsch glacier has a length of 23 kilometres"
DRAFT = f"""# Ice <script>alert(1)</script>

{GOOD} [@glaciers]. It covers 28 square kilometres [@glaciers; @missing2020].
No other mammal has a denser fur [@otters] and the gauge was built in 1922 [@glaciers].
The gauge <b>does</b> not stand in the river Massa [@glaciers]. Raft is easy [@ongaro2014].
Sea otters build dams of birch wood in rivers [@otters; @missing2020].
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index of two papers."""
    folder = tmp_path_factory.mktemp("check")
    with pytest.MonkeyPatch.context() as patch:
        desk = CliRunner(folder, patch, settings={"EMBEDDER": "builtin", "LLM": "builtin"})
        write_pdf(desk.papers / "otters.pdf", OTTERS, "On Sea Otters")
        write_pdf(desk.papers / "glaciers.pdf", GLACIERS, "The Aletsch Glacier")
        assert desk.ingest().code == 0
    (folder / "draft.md").write_text(DRAFT, encoding="utf-8")
    (folder / "good.md").write_text(f"{GOOD} [@glaciers].\n", encoding="utf-8")
    return folder


@pytest.fixture
def ready(made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CliRunner:
    return CliRunner(made, monkeypatch, capsys, settings={"EMBEDDER": "builtin", "LLM": "builtin"})


def run(ready: CliRunner, *arguments: str) -> CliResult:
    return ready._here(folio, arguments)


def test_a_draft_is_checked_sentence_by_sentence(ready: CliRunner) -> None:
    ran = run(ready, "check", "draft.md", "--json")
    checked = ran.object
    Draft202012Validator(CheckedDraftJson.model_json_schema(mode="serialization")).validate(checked)
    assert [(each["line"], each["verdict"], each["trouble"]) for each in checked["sentences"]] == [
        (3, "quoted", False), (3, "number differs", True), (4, "supported", False), (5, "contradicted", True),
        (6, "not found", False),
    ]  # fmt: skip
    first, _, both, *_ = checked["sentences"]
    assert first["claims"][0]["citations"][0]["quote"].startswith("The Aletsch glacier has\na length of 23")
    assert [claim["citations"][0]["file"] for claim in both["claims"]] == ["otters.pdf", "glaciers.pdf"]
    assert [(each["line"], each["cited"]) for each in checked["not_here"]] == [(3, "@missing2020"), (5, "@ongaro2014")]
    assert ran.code == 1


def test_the_terminal_shows_what_to_look_at(ready: CliRunner) -> None:
    ran = run(ready, "check", "draft.md")
    assert (ran.code, "number differs  line 3" in ran.out, "quoted  line 3" in ran.out) == (1, True, False)
    assert "The paper has 82, not 28." in ran.out
    assert ran.out.rstrip().endswith(
        "5 sentences checked: 1 contradicted, 1 number differs, 1 not found, 1 supported, 1 quoted."
    )
    good = run(ready, "check", "good.md", "--all")
    assert (good.code, good.out.startswith(f"quoted  line 1\n  {GOOD}.\n")) == (0, True)


def test_the_html_report_is_escaped_and_asks_for_nothing(ready: CliRunner) -> None:
    assert run(ready, "check", "draft.md", "--html", "report.html").code == 1
    page = (ready.folder / "report.html").read_text(encoding="utf-8")
    assert "does&lt;/b&gt; not" in page
    assert not any(sign in page for sign in ("<script", "<b>", "http://", "https://", "src=", "@import"))
    refused = run(ready, "check", "draft.md", "--html", "draft.md")
    assert (refused.code, (ready.folder / "draft.md").read_text(encoding="utf-8")) == (2, DRAFT)


def test_a_draft_that_cannot_be_read_is_an_error_of_two_lines(ready: CliRunner) -> None:
    ran = run(ready, "check", "missing.md")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 2)


def test_a_sentence_gets_its_citation(ready: CliRunner) -> None:
    ran = run(ready, "cite", *GOOD.split())
    key = ran.out.partition("key       ")[2].splitlines()[0]
    assert (ran.code, f"[@{key}, p. 1]" in ran.out, f"\\cite[p.~1]{{{key}}}" in ran.out) == (0, True, True)
    bibtex = run(ready, "cite", "--bibtex", GOOD)
    assert (bibtex.code, f"{{{key}," in bibtex.out) == (0, True)
    cited = run(ready, "cite", "--json", GOOD).object
    Draft202012Validator(SentenceCitationJson.model_json_schema(mode="serialization")).validate(cited)
    assert (cited["key"], cited["checked"]["verdict"]) == (key, "quoted")


def test_a_sentence_that_no_paper_supports_gets_none(ready: CliRunner) -> None:
    for arguments in (["--bibtex"], []):
        ran = run(ready, "cite", *arguments, GOOD.replace("23", "32"))
        assert (ran.code, ran.out) == (1, "")
        assert "The paper has 23, not 32." in ran.err
