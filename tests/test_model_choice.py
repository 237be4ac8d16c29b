"""Which models are used: what is asked for by name is kept, and auto falls back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from config import Settings
from folio.answer import prompts
from folio.answer.verifier import LlmVerifier
from folio.errors import CloudModel, ModelMissing, ModelServerError
from folio.model_choice import ModelChoice
from folio.models.bert_onnx import CONFIG
from folio.models.cross_encoder import NliVerifier
from folio.protocols import Claim, PromptStart, Verifier
from folio.search.builtin_reranker import ReaderReranker
from tests.helpers.ollama_models import LLAMA, NOMIC
from tests.helpers.ollama_server import OllamaStandIn, closed_url

pytestmark = pytest.mark.environment


def settings(folder: Path, **chosen: str) -> Settings:
    return Settings(_env_file=None, MODELS_DIR=folder, **chosen)  # type: ignore[call-arg,arg-type]


BETTER = "Using built-in models. For better answers, {} (`python query.py --doctor` shows how)."


def test_a_choice_is_kept_and_auto_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notices: list[str] = []

    def app(choice: str) -> ModelChoice:
        chosen = settings(tmp_path, RERANKER=choice, CROSS_ENCODER="nobody/has-this", VECTORSTORE_DIR=str(tmp_path))
        return ModelChoice(chosen, notices.append)

    assert app("none").reranker() is None
    assert isinstance(app("builtin").reranker(), ReaderReranker)
    with pytest.raises(ModelMissing) as caught:
        app("crossencoder").reranker()
    assert caught.value.happened == "The files of nobody/has-this are not on this computer."
    assert "`make models`" in caught.value.remedy
    assert notices == []
    automatic, again = app("auto"), app("auto")  # the second in another process, say
    assert isinstance(automatic.reranker(), ReaderReranker)
    for models in (automatic, automatic, again):
        models.reranker()
        assert models.better == ["run `make models`"] or models is automatic
        models.announce()
    assert notices == [BETTER.format("run `make models`")]


def test_without_a_server_the_notice_says_to_start_one(tmp_path: Path) -> None:
    notices: list[str] = []
    store = str(tmp_path / "not made yet")
    chosen = settings(tmp_path, OLLAMA_HOST=closed_url(), CROSS_ENCODER="nobody/has-this", VECTORSTORE_DIR=store)
    models = ModelChoice(chosen, notices.append)
    models.reranker()
    models.embedder("")
    models.announce()
    assert (notices, models.better) == ([BETTER.format("start Ollama")], [])


def test_an_embedder_with_unknown_prefixes_is_noted_once(tmp_path: Path) -> None:
    notices: list[str] = []

    def chosen(url: str, model: str, **more: str) -> ModelChoice:
        found = settings(tmp_path, OLLAMA_HOST=url, EMBEDDER="ollama", EMBED_MODEL=model, **more)
        return ModelChoice(found, notices.append)

    with OllamaStandIn() as server:
        for model in ("odd/model:latest", "all-minilm:latest"):
            server.models[model] = replace(NOMIC, name=model)
        chosen(server.url, "nomic-embed-text").embedder("")
        chosen(server.url, "all-minilm").embedder("")
        for prefix in ("none", "query: "):
            chosen(server.url, "odd/model", EMBED_QUERY_PREFIX=prefix).embedder("").embed_query("ice")
        assert notices == []
        assert server.embedded() == ["ice", "query: ice"]
        odd = chosen(server.url, "odd/model")
        assert odd.embedder("").identity() == odd.embedder("ollama").identity()
    (notice,) = notices
    assert notice.startswith("Folio does not know what odd/model reads before a question and a passage.")
    assert "EMBED_QUERY_PREFIX and EMBED_PASSAGE_PREFIX" in notice


NLI = "nobody/nli-model"
START = PromptStart("Rules.", "Evidence.\n", 8192)


def choice(folder: Path, url: str, **chosen: str) -> ModelChoice:
    return ModelChoice(settings(folder, OLLAMA_HOST=url, NLI_MODEL=NLI, **chosen), print)


@pytest.fixture
def with_nli_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models with the NLI model, as far as a choice looks at it: nothing is loaded."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = tmp_path / "models" / "nli-model"
    folder.mkdir(parents=True)
    (folder / CONFIG).write_text("{}", encoding="utf-8")
    return tmp_path / "models"


def asked(server: OllamaStandIn, verifier: Verifier | None) -> tuple[str, str]:
    """The model that a verifier asks, and the rules that it sends."""
    assert isinstance(verifier, LlmVerifier)
    list(verifier.for_answer(START).entails([Claim("Otters eat.", "Otters eat urchins.")]))
    body = server.bodies("/api/chat")[-1]
    return body["model"], body["messages"][0]["content"]


def test_a_verifier_that_is_chosen_never_falls_back(with_nli_model: Path, tmp_path: Path) -> None:
    url, models = closed_url(), with_nli_model
    assert choice(models, url, VERIFIER="none").verifier() is None
    assert isinstance(choice(models, url, VERIFIER="crossencoder").verifier(), NliVerifier)
    with pytest.raises(ModelServerError, match="No Ollama server answers"):
        choice(models, url, VERIFIER="llm").verifier()
    with OllamaStandIn(reply=lambda messages: "yes") as server:
        with pytest.raises(ModelMissing) as caught:
            choice(tmp_path, server.url, VERIFIER="crossencoder").verifier()
        assert caught.value.happened == f"The files of {NLI} are not on this computer."
        assert caught.value.remedy == "Get them with `make models`, or set VERIFIER=none."
        with pytest.raises(ModelMissing, match="does not have the model small"):
            choice(models, server.url, VERIFIER="llm", VERIFIER_MODEL="small").verifier()
        with pytest.raises(CloudModel):
            choice(models, server.url, VERIFIER="llm", VERIFIER_MODEL="gpt-oss:120b-cloud").verifier()
        named = choice(models, server.url, VERIFIER="llm", LLM="builtin")
        assert asked(server, named.verifier()) == ("llama3.1:8b", "Rules.")
        assert asked(server, named.verifier(model="builtin")) == ("llama3.1:8b", "Rules.")


def test_auto_takes_the_verifier_that_is_there(with_nli_model: Path, tmp_path: Path) -> None:
    with OllamaStandIn(reply=lambda messages: "yes") as server:
        server.models["other:1b"] = replace(LLAMA, name="other:1b")
        there = choice(with_nli_model, server.url)
        assert asked(server, there.verifier()) == ("llama3.1:8b", "Rules.")
        assert asked(server, there.verifier(model="other:1b")) == ("other:1b", "Rules.")
        # Another model has read no evidence.
        small = choice(tmp_path, server.url, VERIFIER_MODEL="other:1b")
        assert asked(server, small.verifier()) == ("other:1b", prompts.VERIFIER)
        # Answers that are quotes need none; an evaluation of labelled answers takes the cross-encoder.
        missing = choice(tmp_path, server.url)
        assert missing.verifier(model="builtin") is None
        assert choice(tmp_path, server.url, LLM="builtin").verifier() is None
        assert choice(tmp_path, server.url, LLM_MODEL="nope").verifier() is None
        local = choice(with_nli_model, server.url, LLM="builtin")
        verifier = local.verifier()
        assert isinstance(verifier, NliVerifier)
        assert verifier.name == NLI
        assert local.verifier(model="builtin") is verifier  # it is loaded once
        with pytest.raises(ModelMissing, match="does not have the model small"):
            choice(tmp_path, server.url, VERIFIER_MODEL="small").verifier()
    assert choice(tmp_path, closed_url()).verifier() is None
