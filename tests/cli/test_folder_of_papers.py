"""Folio run in a folder that somebody else has filled: what lies there is read as papers, and never obeyed.

And where settings do come from: the environment, the user's own file, the checkout's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import config
from config import PERSONAL, Settings, SettingsError, load_settings
from folio.models.bert_onnx import find_model
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.ollama_server import OllamaStandIn

QUESTION = "How long is the Aletsch glacier?"


@pytest.fixture
def reader(desk: CliRunner, two_papers: Path) -> CliRunner:
    """A desk over an index to ask and not to change, in an empty folder of its own."""
    desk.settings |= {"VECTORSTORE_DIR": str(two_papers / "vectorstore"), "EMBEDDER": "builtin", "LLM": "builtin"}
    desk.settings["QUERY_LOG"] = "false"
    return desk


@pytest.fixture
def own(desk: CliRunner) -> Path:
    """The user's own .env, not there yet."""
    folder = Path(desk.environment()["XDG_CONFIG_HOME"], "folio")
    folder.mkdir(parents=True)
    return folder / ".env"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The .env of a checkout, not there yet."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.setattr(config, "CHECKOUT", folder)
    return folder / ".env"


@pytest.fixture
def bare(desk: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process in the desk's folder, with nothing set but where the user's own files are."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, desk.environment()[name])
    monkeypatch.chdir(desk.folder)


# The folder of papers


def test_an_env_file_in_the_current_folder_runs_no_command(reader: CliRunner) -> None:
    (reader.folder / ".env").write_text("PDF_VIEWER=touch executed {file}\n", encoding="utf-8")
    ran = reader.query("--verify", QUESTION)
    assert ran.code == 0
    assert [path.name for path in reader.folder.iterdir() if path.name == "executed"] == []


def test_an_env_file_in_the_current_folder_sets_nothing(desk: CliRunner, own: Path) -> None:
    small_papers(desk.papers)
    ignored = desk.folder / ".env"
    ignored.write_text("CHUNK_SIZE=many\nOLLAMA_HOST=http://127.0.0.1:1/elsewhere\n", encoding="utf-8")
    ran = desk.ingest()
    assert ran.code == 0
    said = [line for line in ran.err.splitlines() if ".env" in line]
    assert said == [f"The file .env in the current folder is not read. Your settings go into {own}."]
    ignored.rename(own)
    assert desk.ingest().err.startswith("A setting is invalid: CHUNK_SIZE: ")


@pytest.mark.usefixtures("bare")
def test_papers_inside_the_checkout_are_not_the_checkout(
    desk: CliRunner, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = checkout.parent / "papers"
    papers.mkdir()
    for folder, value in ((checkout.parent, "7"), (papers, "9")):
        (folder / ".env").write_text(f"TOP_K={value}\n", encoding="utf-8")
    notices: list[str] = []
    for folder in (checkout.parent, papers):
        monkeypatch.chdir(folder)
        assert load_settings(notices.append).TOP_K == 7
        assert len(notices) == (folder == papers)


def test_worker_processes_import_nothing_from_the_current_folder(desk: CliRunner) -> None:
    small_papers(desk.papers)
    for module in ("multiprocessing", "pickle", "signal", "folio", "pymupdf"):
        (desk.folder / f"{module}.py").write_text("open('executed', 'w').close()\n", encoding="utf-8")
    ran = desk.spawn("ingest.py", "--jobs", "2", more={"EMBEDDER": "builtin", "LLM": "builtin"})
    assert (ran.code, (desk.folder / "executed").exists()) == (0, False)


def test_a_model_name_is_no_path_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "cross-encoder" / "ms-marco-MiniLM-L-6-v2"
    planted.mkdir(parents=True)
    (planted / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    name = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    assert find_model(name, tmp_path / "models") is None
    assert find_model(f"./{name}", tmp_path / "models") == Path(name)
    assert find_model(str(planted), tmp_path / "models") == planted


# Where settings come from


@pytest.mark.usefixtures("bare")
def test_settings_come_from_environment_user_file_then_checkout(
    own: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.write_text("TOP_K=7\nCHUNK_SIZE=700\nCHUNK_OVERLAP=70\n", encoding="utf-8")
    own.write_text("CHUNK_SIZE=800\nCHUNK_OVERLAP=80\nOLLAMA_HOST=127.0.0.1:8\nPDF_VIEWER=none\n", encoding="utf-8")
    monkeypatch.setenv("CHUNK_OVERLAP", "90")
    found = load_settings(pytest.fail)
    assert (found.TOP_K, found.CHUNK_SIZE, found.CHUNK_OVERLAP) == (7, 800, 90)
    assert (found.OLLAMA_HOST, found.PDF_VIEWER) == ("127.0.0.1:8", "none")


@pytest.mark.usefixtures("bare")
def test_a_checkout_cannot_set_what_is_personal(checkout: Path) -> None:
    for name in (*PERSONAL, *map(str.lower, PERSONAL)):
        checkout.write_text(f"{name}=true\n", encoding="utf-8")
        with pytest.raises(SettingsError, match=f"{name.upper()}: .*must not set it"):
            load_settings(pytest.fail)


@pytest.mark.usefixtures("bare")
def test_a_file_that_cannot_be_read_is_named(own: Path) -> None:
    own.write_bytes(b"TOP_K=\xff\n")
    with pytest.raises(SettingsError, match=f"{own} cannot be read"):
        load_settings(pytest.fail)


@pytest.mark.usefixtures("bare")
def test_a_mistyped_setting_in_a_file_is_named(own: Path, checkout: Path) -> None:
    own.write_text("EMBEDER=builtin\ntopk=3\nCHUNK_SIZE=800\n", encoding="utf-8")
    checkout.write_text("FOLIO_LLM=builtin\nCOMPOSE_PROFILES=gpu\n", encoding="utf-8")
    notices: list[str] = []
    assert load_settings(notices.append).CHUNK_SIZE == 800
    assert notices == [
        f"Not a setting in {checkout}: COMPOSE_PROFILES, FOLIO_LLM (did you mean LLM?). docs/settings.md lists them.",
        f"Not a setting in {own}: EMBEDER (did you mean EMBEDDER?), TOPK (did you mean TOP_K?)."
        " docs/settings.md lists them.",
    ]


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("name", "meant"),
    [("EMBEDER", "EMBEDDER"), ("embeder", "EMBEDDER"), ("RERNAKER", "RERANKER"), ("LLM_MODLE", "LLM_MODEL"),
     ("TOPK", "TOP_K"), ("MODEL_DIR", "MODELS_DIR"), ("OLLAMA_HSOT", "OLLAMA_HOST"), ("FOLIO_LLM", "LLM")],
)  # fmt: skip
def test_a_mistyped_setting_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch, name: str, meant: str) -> None:
    monkeypatch.setenv(name, "secret")
    notices: list[str] = []
    load_settings(notices.append)
    assert notices == [f"{name.upper()} in the environment is not a setting (did you mean {meant}?)."]
    monkeypatch.setenv(meant, "7" if meant == "TOP_K" else "builtin")  # who sets it knows it
    load_settings(pytest.fail)


@pytest.mark.usefixtures("bare")
def test_variables_of_other_programs_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    others = """OLLAMA_MODELS OLLAMA_KEEP_ALIVE OLLAMA_ORIGINS OLLAMA_NUM_PARALLEL UV_CACHE_DIR PIP_CACHE_DIR
        XDG_CACHE_DIR HF_HUB_CACHE HF_HOME PARALLEL_SEQ OS LC_ALL EDITOR PAGER VIEWER STORAGE INDEXER RESTRICT PUBLIC
        TERM LINES COLUMNS CUDA_VISIBLE_DEVICES OMP_NUM_THREADS OPENAI_ADMIN_KEY OPENAI_API_BASE OPENAI_ORG_ID
        OPENAI_PROJECT_ID OPENAI_MODEL RAY_TMPDIR FOLIO_HOME"""
    for name in others.split():
        monkeypatch.setenv(name, "1")
    load_settings(pytest.fail)


# Another computer. 127.1 is this one to the system and another to Folio, so no test asks beyond the loopback.


@pytest.fixture
def elsewhere(reader: CliRunner, ollama_server: OllamaStandIn) -> CliRunner:
    """A desk with an Ollama server whose address is not known to be this computer's."""
    host = ollama_server.url.replace("127.0.0.1", "127.1")
    assert host != ollama_server.url
    ollama_server.reply = lambda messages: "The Aletsch glacier has a length of 23 kilometres [1]."
    reader.settings |= {"OLLAMA_HOST": host, "LLM": "ollama"}
    return reader


def test_another_computer_is_refused(elsewhere: CliRunner, ollama_server: OllamaStandIn) -> None:
    host = elsewhere.settings["OLLAMA_HOST"]
    for command in (["--sources", QUESTION], [QUESTION], ["--doctor"], ["--stats"]):
        ran = elsewhere.query(*command)
        assert (ran.code, ran.out) == (2, "")
        happened, remedy = ran.err.splitlines()
        assert happened == f"OLLAMA_HOST is {host}, another computer: questions and passages would be sent there."
        assert "ALLOW_REMOTE_OLLAMA=true" in remedy
    assert ollama_server.requests == []


def test_an_allowed_other_computer_is_named_each_time(elsewhere: CliRunner, ollama_server: OllamaStandIn) -> None:
    elsewhere.settings["ALLOW_REMOTE_OLLAMA"] = "true"
    notice = f"Questions and passages go to {elsewhere.settings['OLLAMA_HOST']}, another computer."
    for command in ([QUESTION], ["--sources", QUESTION], ["--doctor"]):
        ran = elsewhere.query(*command)
        assert ran.code == 0
        assert ran.err.count(notice) == 1
    assert ollama_server.bodies("/api/chat")
