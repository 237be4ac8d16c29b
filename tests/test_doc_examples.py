"""The commands that the README and the pages in docs/ show do what they say: each runs on a small library."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from folio.cli import main as folio
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.paths import ROOT
from tests.test_docs import prose

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RAFT = ("In Raft, a leader is elected by a majority. Raft is meant to be understood. " * 6,)
NOT_RUN = {  # how an example begins -> why it does not run here
    "make ": "sets up an environment; .ci/run has it",
    "pip install": "installs packages",
    "docker ": "needs Docker; tests/deploy has it",
    "curl ": "needs a server; tests/web has it",
    "export ": "belongs to the command behind it",
    "cp ": "belongs to Docker's command behind it",
    "folio ask --json ": "names the option",
    "folio ask --online ": "names the option; tests/cli/test_online.py runs it",
    "folio mcp": "waits for an assistant; tests/mcp has one",
    "folio notes export --pdf": "their home is read as papers; tests/bibliography/test_annotated.py has another",
    "folio serve": "serves until it is stopped; tests/web has it",
    "folio fetch": "uses the internet; tests/cli/test_fetch*.py run it against recorded answers",
    "folio ingest --on ray": "needs Ray; tests/shared has it",
    "folio move": "needs PostgreSQL; tests/shared has it",
    "folio ingest --watch": "runs until Ctrl-C; tests/ingest/test_sync.py ends it",
    "WATCH=": "serves until Ctrl-C; tests/ingest/test_sync.py ends it",
    "folio ingest --zotero": "needs Zotero's library; tests/cli/test_zotero.py makes one",
    "folio ask --collection": "needs Zotero's library; tests/cli/test_zotero.py makes one",
    "folio papers list --collection": "needs Zotero's library; tests/cli/test_zotero.py makes one",
    "folio evaluate --make": "a chat model writes the set; tests/evaluate/test_command.py has one",
    "folio evaluate --judge ": "a chat model grades; tests/evaluate/test_command.py has one",
    "LLM=openai": "needs a server; tests/cli/test_openai_server.py has one",
    "PARSER=layout": "takes half a minute; tests/pdf has it",
    "python -m benchmarks.grounding": "tests/benchmarks runs it",
}
# The script of a checkout, and the command that has its options
FOLIO = {"ingest.py": "ingest", "query.py": "ask", "evaluate.py": "evaluate", "serve.py": "serve", "fetch.py": "fetch"}


def examples() -> Iterator[str]:
    """Every command of the pages once: the lines of their code for a shell, and commands with arguments in the text."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield from (line for line in block.splitlines() if language in ("", "sh") and _SHELL.match(line))
        for line in re.findall(r"`([^`]+)`", prose(page).replace("\n", " ")):
            named = re.match(r"(?:[A-Z_]+=\S+ )?(?:folio|python(?: -m folio| \w+\.py)) \S", line)
            # "folio evaluate" alone names a command, and FILE stands for any file.
            has_arguments = named and re.search(r"[ =][^-\s]\S*|--[\w-]+$", line[named.end() - 1 :])
            if has_arguments and not _PLACEHOLDER.search(line):
                yield line


_SHELL = re.compile(r"(?:folio|python|make|pip|docker|curl|git|cp|export) |[A-Z_]+=\S+ \w")
_PLACEHOLDER = re.compile(r"(?<![\w=./-])[A-Z][A-Z_]{2,}(?![\w=./-])|\.\.\.")


def in_folio(line: str) -> str:
    """An example as a command of `folio`, without its comment: what to call, and what the table has."""
    plain = re.sub(r"\s+#.*$", "", line)
    plain = re.sub(r"\bpython -m folio\b", "folio", plain)
    return re.sub(r"\bpython (\w+\.py)\b", lambda found: f"folio {FOLIO[found[1]]}", plain) + " "


EXAMPLES = sorted(dict.fromkeys(map(in_folio, examples())), key=lambda line: "--rebuild" in line)


def skipped(line: str) -> list[str]:
    return [beginning for beginning in NOT_RUN if line.startswith(beginning)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliRunner]:
    """A checkout with papers that have been read, and the files that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        made = CliRunner(folder, patch, settings={"EMBEDDER": "builtin", "LLM": "builtin", "NO_COLOR": "1"})
        shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", ignore=shutil.ignore_patterns("*.py", "*.json"))
        sample = folder / "benchmarks" / "sample.jsonl"
        sample.write_text("".join(sample.read_text(encoding="utf-8").splitlines(keepends=True)[:3]), encoding="utf-8")
        shutil.copy(ROOT / "papers" / "folio-sample.pdf", made.papers)
        write_pdf(made.papers / "raft.pdf", RAFT, "In Search of an Understandable Consensus Algorithm")
        otters = write_pdf(made.papers / "otters.pdf", OTTERS, "On Sea Otters")
        for elsewhere in ("home/papers", "home/thesis"):  # the same file: a second one has another date
            (folder / elsewhere).mkdir(parents=True)
            shutil.copy(otters, folder / elsewhere)
        write_pdf(folder / "a.pdf", GLACIERS, "The Aletsch Glacier")
        asked = "".join(f"What does an adult otter eat each day {number} times?\n" for number in range(17))
        (folder / "questions.txt").write_text(asked, encoding="utf-8")
        place = {"paper": "otters.pdf", "page": 2, "quote": OTTERS[1][:60]}
        line = {"id": "a", "question": "What does an adult otter eat?", "gold": [place]}
        (folder / "questions.jsonl").write_text(json.dumps(line), encoding="utf-8")
        (folder / "library.bib").write_text("@misc{a, title = {The Aletsch Glacier}, year = 2021}\n", encoding="utf-8")
        (folder / "draft.md").write_text("No other mammal has a denser fur [@otters].\n", encoding="utf-8")
        thesis = r"\begin{document}No other mammal has a denser fur \citep{otters}.\end{document}"
        (folder / "thesis.tex").write_text(thesis, encoding="utf-8")
        for command in (
            *("ingest", "ask --batch questions.txt", "ask --feedback good"),
            'papers edit raft.pdf "authors=Ongaro, Diego; Ousterhout, John" year=2014 tags=consensus',
            "table new questions.txt --name Mine --no-fill --paper raft.pdf",
            *(f"evaluate questions.jsonl --json {name}.json" for name in ("before", "now")),
        ):
            assert run(made, f"folio {command}").code == 0, command
        yield made


def run(desk: CliRunner, line: str) -> CliResult:
    words = [re.sub("^~", str(desk.folder / "home"), word) for word in shlex.split(line)]
    settings = dict(word.split("=", 1) for word in words if re.match("[A-Z_]+=", word))
    (desk.folder / "asked.jsonl").unlink(missing_ok=True)  # a set is never written over
    with desk.monkeypatch.context() as patch:
        for setting, value in settings.items():
            patch.setitem(desk.settings, setting, value)
        try:
            return desk._here(folio, words[len(settings) + 1 :])
        except SystemExit as end:  # --version
            return CliResult(int(end.code or 0), "", "")


@pytest.mark.parametrize("line", [line for line in EXAMPLES if not skipped(line)])
def test_an_example_runs(desk: CliRunner, capsys: pytest.CaptureFixture[str], line: str) -> None:
    desk.capsys = capsys
    ran = run(desk, line)
    assert ran.code == 0, ran.out + ran.err


@dataclass
class Program:
    """A block of Python, run as a command is."""

    text: str

    def main(self, arguments: Sequence[str]) -> int:
        exec(compile(self.text, "example", "exec"), {})
        return 0


def test_ten_lines_of_python_ask_and_search(desk: CliRunner, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    first = next(re.finditer(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))[1]
    assert len(first.splitlines()) <= 10
    desk.capsys = capsys
    ran = desk._here(Program(first), [])
    said, *found = ran.out.splitlines()
    assert "a leader is elected by a majority" in said
    assert "In Search of an Understandable Consensus Algorithm 1 In Raft" in said
    assert any("raft.pdf (1, 1) " in line for line in found)


def test_what_is_not_run_is_still_shown() -> None:
    assert {beginning for line in EXAMPLES for beginning in skipped(line)} == set(NOT_RUN)
    assert len(EXAMPLES) > 2 * len(NOT_RUN)


def test_the_paper_that_the_readme_edits_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = CliRunner(tmp_path, monkeypatch, capsys, settings={"EMBEDDER": "builtin", "LLM": "builtin"})
    write_pdf(desk.papers / "1-s2.0.pdf", RAFT, "In Search of an Understandable Consensus Algorithm")
    write_pdf(desk.papers / "otters.pdf", OTTERS, "On Sea Otters")
    assert desk.ingest().code == 0
    (line,) = (line for line in EXAMPLES if line.startswith("folio papers edit raft year="))
    ran = run(desk, line)
    assert (ran.code, ran.err) == (0, "")
    (edited,) = run(desk, "folio papers list --year 2014 --json").objects
    assert edited["file"] == "1-s2.0.pdf"
