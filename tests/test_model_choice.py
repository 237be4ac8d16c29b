"""Which models are used: what is asked for by name is kept, and auto falls back."""

from __future__ import annotations

from pathlib import Path

import pytest

from config import Settings
from folio.errors import ModelMissing
from folio.model_choice import ModelChoice
from folio.search.builtin_reranker import BuiltinReranker


def settings(folder: Path, **chosen: str) -> Settings:
    return Settings(_env_file=None, MODELS_DIR=folder, **chosen)  # type: ignore[call-arg,arg-type]


def test_a_choice_is_kept_and_auto_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notices: list[str] = []

    def app(choice: str) -> ModelChoice:
        return ModelChoice(settings(tmp_path, RERANKER=choice, CROSS_ENCODER="nobody/has-this"), notices.append)

    assert app("none").reranker() is None
    assert isinstance(app("builtin").reranker(), BuiltinReranker)
    with pytest.raises(ModelMissing) as caught:
        app("crossencoder").reranker()
    assert caught.value.happened == "The files of nobody/has-this are not on this computer."
    assert "`make models`" in caught.value.remedy
    assert notices == []
    automatic = app("auto")
    assert isinstance(automatic.reranker(), BuiltinReranker)
    automatic.announce()
    (notice,) = notices
    assert "reranker" in notice
    assert "run `make models`" in notice
