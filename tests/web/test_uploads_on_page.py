"""Uploads in the page: what was chosen or dropped is added, whatever becomes of the tab and of the server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import Locator, Route, expect

from folio.app import App
from folio.schema.web import UploadJson
from folio.store import indexes
from folio.system import workers
from folio.web.uploads import Record, UploadQueue
from tests.helpers.browser import PHONE, WIDE, Tab, drop
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import GLACIERS, OTTERS, small_papers, write_pdf
from tests.helpers.fakes import hashing_app, read_here
from tests.helpers.live_server import LIMIT_S, Live, until
from tests.helpers.page import rows
from tests.helpers.serve_process import Served

pytestmark = pytest.mark.slow

TORN = b"%PDF-1.7\nthe rest of it was lost"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    """No paper yet; what is added is read and embedded at once."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    (tmp_path / "papers").mkdir()
    return hashing_app(tmp_path, LLM="builtin", RERANKER="builtin")


@pytest.fixture
def live(app: App) -> Iterator[Live]:
    with Live(app) as made:
        yield made


Open = Callable[..., Tab]


@pytest.fixture
def show(opened: Open) -> Open:
    """A function that opens the library on the page of a server."""
    return lambda server, size=WIDE: opened(server, size, "#library")


def three(folder: Path, pages: int = 5) -> list[Path]:
    """Files of two papers with so many pages, and a short one."""
    made = folder / "chosen"
    long = [f"Page {number}. {' '.join(GLACIERS * 2)}" for number in range(pages)]
    return [
        write_pdf(made / "first.pdf", long, "The First"),
        write_pdf(made / "second.pdf", long[::-1], "The Second"),
        write_pdf(made / "third.pdf", OTTERS, "The Third"),
    ]


def choose(tab: Tab, *files: Path) -> None:
    tab.find("#files").set_input_files(list(files))


def titles(tab: Tab) -> list[str]:
    return sorted(rows(tab).locator(".title").all_inner_texts())


def line(tab: Tab, name: str) -> Locator:
    return tab.page.locator(".upload", has_text=name)


def warns(tab: Tab) -> bool:
    """Whether the browser would ask before it closes or reloads the tab."""
    return not tab.page.evaluate("dispatchEvent(new Event('beforeunload', { cancelable: true }))")


def bar(tab: Tab) -> Locator:
    return tab.find("#adding-text")


def test_files_survive_a_reload_of_the_tab(live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    choose(tab, *three(tmp_path))
    time.sleep(0.7)
    until(lambda: not warns(tab))  # on a slow computer they may not have been sent yet
    tab.reload()
    expect(bar(tab)).to_have_text("3 papers added")
    expect(tab.find(".upload")).to_have_count(3)
    said = sorted(tab.find(".upload .stage").all_inner_texts())
    assert said == [f"Added: {each}." for each in ("The First, 5 pages", "The Second, 5 pages", "The Third, 2 pages")]
    expect(rows(tab)).to_have_count(3)
    assert titles(tab) == ["The First", "The Second", "The Third"]
    expect(tab.find("#foot-line")).to_contain_text("3 papers")
    tab.page.get_by_role("button", name="Dismiss second.pdf").click()
    expect(tab.find(".upload")).to_have_count(2)
    expect(tab.find(".upload button:focus")).to_have_count(1)
    tab.page.get_by_role("button", name=re.compile("Ask this paper ?: The Third")).first.click()
    expect(tab.find("#chosen")).to_contain_text("The Third")


def test_a_paper_that_is_there_already_is_neither_added_nor_failed(live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    first, _, third = three(tmp_path, pages=2)
    choose(tab, first)
    expect(bar(tab)).to_have_text("1 paper added")
    again = first.with_name("copy.pdf")
    again.write_bytes(first.read_bytes())
    choose(tab, again, third)
    expect(bar(tab)).to_have_text("1 paper added, 1 already in the library")
    expect(line(tab, "copy.pdf")).to_contain_text("Already in the library as The First")
    tab.find("#adding-close").click()
    choose(tab, again)
    expect(bar(tab)).to_have_text("1 already in the library")
    expect(tab.find("#adding-again")).to_be_hidden()
    assert titles(tab) == ["The First", "The Third"]


def test_a_second_tab_shows_the_same_uploads(app: App, live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    other = tab.context.new_page()
    other.goto(f"{live.url}/#library")
    expect(other.locator("#library-count")).to_contain_text("No papers yet")
    with indexes.writing(app.store_folder):
        choose(tab, *three(tmp_path))
        for page in (tab.page, other):
            expect(page.locator("#adding-text")).to_have_text("0 of 3 papers added")
            expect(page.locator(".upload .stage")).to_have_text(["Waiting"] * 3)
            expect(page.locator("#adding-notice")).to_have_text(
                "Another process is writing to this index. The files here are added after that."
            )
    for page in (tab.page, other):
        expect(page.locator("#adding-text")).to_have_text("3 papers added")
        expect(page.locator(".table-rows > .table-row")).to_have_count(3)


def test_a_file_has_one_line_despite_a_late_reply(
    live: Live, show: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Event()
    enqueue = UploadQueue.enqueue

    def reply_late(queue: UploadQueue, id: str, record: Record) -> UploadJson:
        reply = enqueue(queue, id, record)
        assert record.file != "first.pdf" or shown.wait(LIMIT_S)
        return reply

    monkeypatch.setattr(UploadQueue, "enqueue", reply_late)
    tab = show(live)
    first, _, last = three(tmp_path)
    choose(tab, first)
    choose(tab, last)
    expect(line(tab, "first.pdf")).to_have_count(2)
    shown.set()
    expect(bar(tab)).to_have_text("2 papers added")
    expect(tab.find(".upload")).to_have_count(2)


SHOW = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_hidden_tab_looks_at_nothing_until_it_is_shown(app: App, live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    with indexes.writing(app.store_folder), live.client() as client:
        choose(tab, *three(tmp_path))
        expect(tab.find(".upload .stage")).to_have_text(["Waiting"] * 3)
        expect(tab.find("#adding-notice")).to_contain_text("Another process")
        tab.page.evaluate(SHOW, True)
        tab.page.wait_for_timeout(1000)  # a look that had begun has ended
        asked = len(tab.asked)
        assert client.delete("/uploads").json() == {"cancelled": 3}
        tab.page.wait_for_timeout(1500)
        assert not any(url.endswith("/uploads") for url in tab.asked[asked:])
        expect(tab.find(".upload")).to_have_count(3)
        tab.page.evaluate(SHOW, False)
        expect(tab.find(".upload")).to_have_count(0)


def folder_of_papers(tmp_path: Path) -> Path:
    folder = small_papers(tmp_path / "My papers")
    write_pdf(folder / "alps" / "deep" / "DEEPER.PDF", OTTERS[:1], "Deeper Still")
    (folder / "alps" / "notes.txt").write_text("none")
    (folder / "alps" / "._glaciers.pdf").write_bytes(b"of macOS")
    write_pdf(folder / ".git" / "hidden.pdf", OTTERS, "Hidden")
    return folder


IN_FOLDER = ["Deeper Still", "On Sea Otters", "The Aletsch Glacier"]


def test_a_folder_is_chosen(live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    tab.find("#folder").set_input_files(folder_of_papers(tmp_path))
    expect(tab.find("#toast")).to_have_text("1 file left out: only PDFs are added.")
    expect(bar(tab)).to_have_text("3 papers added")
    expect(rows(tab)).to_have_count(3)
    assert titles(tab) == IN_FOLDER


def test_a_folder_is_dropped(live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    carried = {
        "items": [],
        "files": [str(folder_of_papers(tmp_path)), str(write_pdf(tmp_path / "one.pdf", GLACIERS[:2], "The One"))],
        "dragOperationsMask": 1,
    }
    devtools = tab.context.new_cdp_session(tab.page)
    for kind in ("dragEnter", "dragOver", "drop"):
        devtools.send("Input.dispatchDragEvent", {"type": kind, "x": 700, "y": 400, "data": carried})
    expect(bar(tab)).to_have_text("4 papers added")
    expect(rows(tab)).to_have_count(4)
    assert titles(tab) == sorted([*IN_FOLDER, "The One"])


def test_a_browser_without_folders_still_takes_files(live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    tab.page.add_init_script(
        """delete HTMLInputElement.prototype.webkitdirectory;
        delete DataTransferItem.prototype.webkitGetAsEntry;
        delete window.BroadcastChannel;"""
    )
    tab.reload()
    expect(tab.find("#library-count")).to_contain_text("No papers yet")
    expect(tab.find("#choose-folder")).to_be_hidden()
    drop(tab, write_pdf(tmp_path / "one.pdf", GLACIERS[:2], "The One"))
    expect(tab.find(".upload")).to_contain_text("Added: The One, 2 pages.")


def test_the_queue_survives_a_restart_of_the_server(show: Open, desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    with Served(desk, EMBED_BATCH="2") as served:
        port = str(served.port)
        tab = show(served)
        choose(tab, *three(desk.folder, pages=16))  # seconds of embedding
        expect(tab.find("#uploads")).to_contain_text("Embedding")  # either: their passages are embedded once
        served.kill()
        expect(tab.find("#adding-notice")).to_contain_text("Folio is not responding.")
        choose(tab, write_pdf(desk.folder / "fourth.pdf", OTTERS[:1], "The Fourth"))
        expect(line(tab, "fourth.pdf")).to_contain_text("Folio is not responding.")
    with Served(desk, "--port", port) as served:
        expect(bar(tab)).to_have_text("4 papers added")
        expect(rows(tab)).to_have_count(4)
        assert titles(tab) == ["The First", "The Fourth", "The Second", "The Third"]
    tab.problems = [each for each in tab.problems if "ERR_CONNECTION_RESET" not in each]  # cut when the server ended


def test_what_waits_is_cancelled(app: App, live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    with indexes.writing(app.store_folder):
        choose(tab, *three(tmp_path))
        expect(tab.find(".upload .stage")).to_have_text(["Waiting"] * 3)
        tab.page.get_by_role("button", name="Cancel second.pdf").click()
        expect(tab.find(".upload")).to_have_count(2)
        assert sorted(tab.find(".upload .file").all_inner_texts()) == ["first.pdf", "third.pdf"]
        expect(bar(tab)).to_have_text("0 of 2 papers added")
        tab.find("#adding-cancel").focus()
        tab.page.keyboard.press("Enter")
        expect(tab.find(".upload")).to_have_count(0)
        expect(tab.find("#adding")).to_be_hidden()
        expect(tab.find("#main")).to_be_focused()
    assert list((tmp_path / "papers").iterdir()) == []
    assert not any(path.suffix == ".pdf" for path in (app.store_folder / "uploads").iterdir())


def test_what_failed_says_why_and_is_tried_again(app: App, live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    bad, page, good = tmp_path / "torn.pdf", tmp_path / "page.pdf", write_pdf(tmp_path / "good.pdf", OTTERS, "Good")
    bad.write_bytes(TORN)
    page.write_bytes(b"<html>")
    choose(tab, bad, page, good)
    expect(bar(tab)).to_contain_text("1 of 3 papers added, 2 failed. The list says why.")
    tab.expected("422")
    tab.reload()  # the page that is no PDF never got to the server
    expect(bar(tab)).to_contain_text("1 of 2 papers added, 1 failed: ")
    failed = line(tab, "torn.pdf")
    expect(failed).to_contain_text("Try again to add torn.pdf")
    reason = failed.locator(".happened").inner_text()
    assert bar(tab).inner_text() == f"1 of 2 papers added, 1 failed: {reason}"
    # The cause is mended, as a person would: what waits in the queue is whole now
    (record,) = (path for path in (app.store_folder / "uploads").glob("*.json") if "torn.pdf" in path.read_text())
    mended = write_pdf(tmp_path / "mended.pdf", GLACIERS, "Mended").read_bytes()
    record.with_suffix(".pdf").write_bytes(mended)
    record.write_text(record.read_text().replace(sha256(TORN).hexdigest(), sha256(mended).hexdigest()))
    tab.find("#adding-again").click()
    expect(line(tab, "torn.pdf")).to_contain_text("Added: Mended, 3 pages.")
    expect(bar(tab)).to_have_text(re.compile("^(1 paper|2 papers) added$"))  # with the good one, if it is still listed
    assert sorted(path.name for path in (tmp_path / "papers").iterdir()) == ["good.pdf", "torn.pdf"]


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_bar_is_accessible_and_fits(
    app: App, live: Live, show: Open, tmp_path: Path, size: tuple[int, int]
) -> None:
    tab = show(live, size)
    torn = tmp_path / "A long name of a paper about nothing in particular, which was lost on its way.pdf"
    torn.write_bytes(TORN)
    choose(tab, torn)
    expect(bar(tab)).to_contain_text("0 of 1 paper added, 1 failed")
    with indexes.writing(app.store_folder):
        choose(tab, *three(tmp_path))
        expect(tab.find("#adding-notice")).to_contain_text("Another process")
        assert tab.scrolls_sideways() == []
        assert tab.inaccessible(colours=size == WIDE) == []
        for name in ("files", "folder", "adding-cancel"):
            tab.find(f"#{name}").focus()
            assert tab.focus_shows(), name
        tab.find("#adding-cancel").click()
        expect(tab.find(".upload")).to_have_count(1)


def test_leaving_is_warned_of_only_while_files_are_sent(live: Live, show: Open, tmp_path: Path) -> None:
    tab = show(live)
    held: list[Route] = []
    tab.page.route(re.compile(r"/uploads\?name="), lambda route: held.append(route))
    assert not warns(tab)
    choose(tab, *three(tmp_path))
    expect(tab.find(".upload .stage")).to_have_text(["Sending", "Sending", "Waiting"])
    assert warns(tab)
    for _ in range(2):
        line(tab, "first.pdf").or_(line(tab, "second.pdf")).first.get_by_role("button").click()
    expect(tab.find(".upload .stage")).to_have_text(["Sending"])
    assert len(held) == 3
    held[2].continue_()
    expect(bar(tab)).to_have_text("1 paper added")
    assert not warns(tab)
    expect(line(tab, "third.pdf")).to_contain_text("Added: The Third, 2 pages.")


def test_a_cut_connection_is_tried_again_but_not_for_ever(live: Live, show: Open, tmp_path: Path) -> None:
    """As a proxy does that takes no large bodies."""
    tab = show(live)
    tried: dict[str, list[float]] = {"once.pdf": [], "always.pdf": []}

    def cut(route: Route) -> None:
        name = route.request.url.rpartition("name=")[2]
        tried[name].append(time.monotonic())
        if name == "always.pdf" or len(tried[name]) == 1:
            route.abort("connectionreset")
        else:
            route.continue_()

    tab.page.route(re.compile(r"/uploads\?name="), cut)
    once, always = (tmp_path / name for name in tried)
    write_pdf(once, OTTERS, "Once")
    write_pdf(always, GLACIERS[:2], "Always")
    choose(tab, once, always)
    expect(line(tab, "once.pdf")).to_contain_text("Added: Once, 2 pages.")
    expect(line(tab, "always.pdf")).to_contain_text("The connection was cut 3 times while the file was sent")
    assert [len(times) for times in tried.values()] == [2, 3]
    first, second, third = tried["always.pdf"]
    assert second - first >= 2
    assert third - second >= 4
    tab.page.unroute(re.compile(r"/uploads\?name="))
    line(tab, "always.pdf").get_by_role("button", name=re.compile("Try again")).click()
    expect(line(tab, "always.pdf")).to_contain_text("Added: Always, 2 pages.")
    tab.expected("ERR_CONNECTION_RESET")
