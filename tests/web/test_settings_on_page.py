"""Settings on the page: models switched and got, a rebuild that every tab sees, folders, a bibliography, backups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect

from config import Settings
from folio.system import workers
from tests.helpers.browser import PHONE, WIDE, Tab
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.fakes import read_here
from tests.helpers.live_server import Live, ingest, new_builtin_app
from tests.helpers.ollama_server import OllamaStandIn

pytestmark = pytest.mark.slow

NARROWEST = (320, 256)  # as at 400 %
Open = Callable[..., Tab]


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "Reading" / "deep").mkdir(parents=True)
    for name in Settings.model_fields:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(workers, "run_guarded", read_here)
    return tmp_path / "config" / "folio" / ".env"


@pytest.fixture
def live(tmp_path: Path, ollama_server: OllamaStandIn) -> Iterator[Live]:
    app = new_builtin_app(tmp_path, small_papers(tmp_path / "papers"), OLLAMA_HOST=ollama_server.url)
    assert ingest(app) == ["added", "added"]
    with Live(app) as made:
        yield made


def shown(opened: Open, live: Live, size: tuple[int, int] = WIDE) -> Tab:
    tab = opened(live, size, "#settings")
    expect(tab.find(".model-list li").first).to_be_attached()
    return tab



def test_models_are_switched_and_got(opened: Open, live: Live, own_settings: Path) -> None:
    tab = shown(opened, live)
    tab.find("#set-llm").select_option("ollama llama3.1:8b")
    expect(tab.find("#foot-line")).to_contain_text("llama3.1:8b")
    assert own_settings.read_text() == "LLM='ollama'\nLLM_MODEL='llama3.1:8b'\n"
    tab.find("#pull").fill("all-minilm")
    tab.page.keyboard.press("Enter")
    expect(tab.find('.task[data-kind="pull"]')).to_contain_text("all-minilm is there.")
    expect(tab.find(".model-list")).to_contain_text("all-minilm:latest")
    tab.find('.task[data-kind="pull"]').get_by_role("button", name="Dismiss").click()
    expect(tab.find(".task")).to_have_count(0)
    tab.find("#pull").fill("no-such")
    tab.page.keyboard.press("Enter")
    expect(tab.find(".task .problem")).to_contain_text("could not download no-such")


def test_another_embedder_is_taken_with_a_rebuild_that_each_tab_sees(opened: Open, live: Live) -> None:
    tab, other = shown(opened, live), opened(live, WIDE, "#library")
    tab.find("#set-embedder").select_option("ollama nomic-embed-text:latest")
    dialog = tab.page.get_by_role("dialog", name="Rebuild the index?")
    expect(dialog).to_contain_text("embedder is builtin in the index and ollama now")
    dialog.get_by_role("button", name="Cancel").click()
    expect(tab.find("#set-embedder")).to_have_value("builtin")
    tab.find("#set-embedder").select_option("ollama nomic-embed-text:latest")
    dialog.get_by_role("button", name="Rebuild", exact=True).click()
    expect(tab.find('.task[data-kind="rebuild"]')).to_contain_text("The index has 2 papers.")
    expect(tab.find("#set-embedder")).to_have_value("ollama nomic-embed-text:latest")
    expect(tab.find("#foot-line")).to_contain_text("nomic-embed-text")
    expect(other.find("#foot-line")).to_contain_text("nomic-embed-text")


def test_a_bibliography_is_seen_before_it_is_taken(opened: Open, live: Live, tmp_path: Path) -> None:
    bib = tmp_path / "mine.bib"
    bib.write_text("@article{otter2020, title={On Sea Otters}, author={Byte, Ada}, year={2020}, file={otters.pdf}}")
    tab = shown(opened, live)
    tab.find("#bibliography").set_input_files(bib)
    preview = tab.find(".bib-preview")
    expect(preview).to_contain_text("1 paper matches, 1 would change, 0 entries without a paper.")
    expect(preview).to_contain_text("authors, year")
    preview.get_by_role("button", name="Import").click()
    expect(preview).to_be_empty()
    tab.find("#bibliography").set_input_files(bib)
    expect(preview).to_contain_text("Nothing would change.")


def test_a_backup_is_downloaded_and_restored(opened: Open, live: Live, tmp_path: Path) -> None:
    tab = shown(opened, live)
    with tab.page.expect_download() as download:
        tab.page.get_by_role("link", name="Download a backup").click()
    kept = tmp_path / "kept.sqlite.gz"
    download.value.save_as(kept)
    tab.find("#restore").set_input_files(kept)
    dialog = tab.page.get_by_role("dialog", name="Restore what you made?")
    expect(dialog).to_contain_text("kept.sqlite.gz takes the place")
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(tab.find("#toast")).to_contain_text("Restored:")


def test_a_folio_without_papers_begins_with_a_folder(
    opened: Open, tmp_path: Path, ollama_server: OllamaStandIn, own_settings: Path
) -> None:
    papers = tmp_path / "home" / "Reading"
    write_pdf(papers / "badgers.pdf", ["A paper about badgers. Badgers dig long tunnels at night."])
    with Live(new_builtin_app(tmp_path / "new", tmp_path / "new" / "papers", OLLAMA_HOST=ollama_server.url)) as bare:
        tab = opened(bare, WIDE, "#ask")
        tab.page.get_by_role("button", name="Choose a folder").click()
        chooser = tab.page.get_by_role("dialog", name="Add a folder")
        chooser.get_by_role("button", name="Reading").click()
        expect(chooser).to_contain_text("1 PDF in it and below.")
        assert tab.inaccessible() == []
        chooser.get_by_role("button", name="Use this folder").click()
        expect(tab.find(".welcome h1")).to_have_text("What do you want to know?")
        assert own_settings.read_text() == f"WATCH='{papers}'\n"


def test_where_others_can_reach_it_nothing_can_be_changed(
    opened: Open, tmp_path: Path, ollama_server: OllamaStandIn
) -> None:
    app = new_builtin_app(tmp_path, small_papers(tmp_path / "papers"), OLLAMA_HOST=ollama_server.url)
    ingest(app)
    with Live(app, public_url="https://example.org") as public:
        tab = opened(public, WIDE, "#settings")
        expect(tab.find("#view-settings .lead")).to_contain_text("Other people can reach this Folio.")
        expect(tab.find(".parts")).to_be_hidden()


@pytest.mark.parametrize("size", [WIDE, PHONE, NARROWEST])
def test_settings_fit_and_are_accessible(opened: Open, live: Live, size: tuple[int, int]) -> None:
    tab = shown(opened, live, size)
    assert tab.scrolls_sideways() == []
    themes: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
    for theme in themes:
        tab.page.emulate_media(color_scheme=theme)
        assert tab.inaccessible() == []
