"""The pages of papers over the API: their text and its places, pictures at a resolution, words to find."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import process_time

import pymupdf
import pytest
from fastapi.testclient import TestClient

from folio.papers.sections import PaperSection
from folio.system import workers
from folio.web.pages import MOST_HITS, Cache, find_words, heading_span, paragraphs, reads_right_to_left
from tests.helpers.fakes import read_here
from tests.helpers.web_client import NOBODY, client_of, papers_by_file, refusal, small_app

PROSE = "The sea otter floats in rafts of kelp and sleeps on its back while the tide runs out of the bay."

HEADINGS = ("1 Introduction", "2 The kelp forest", "3 Results and discussion")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A paper of three pages with headings, a link and printed page numbers i, ii, iii."""
    folder = tmp_path_factory.mktemp("pages")
    document = pymupdf.open()
    for number in range(3):
        page = document.new_page(width=400 if number == 2 else 595)
        page.insert_text((60, 90), HEADINGS[number], fontsize=16, fontname="hebo")
        for line in range(6):
            page.insert_text((60, 130 + 14 * line), f"{PROSE[:60]} {number}{line}.", fontsize=10)
    document[0].insert_link({"kind": pymupdf.LINK_GOTO, "from": pymupdf.Rect(60, 300, 90, 310), "page": 2})
    document.set_page_labels([{"startpage": 0, "style": "r", "firstpagenum": 1}])
    (folder / "papers").mkdir()
    document.save(folder / "papers" / "kelp.pdf")
    app = small_app(folder)
    with client_of(app) as opened:
        yield opened


@pytest.fixture
def paper(client: TestClient) -> str:
    return str(papers_by_file(client)["kelp.pdf"]["id"])


def test_the_text_of_a_page(client: TestClient, paper: str) -> None:
    reply = client.get(f"/papers/{paper}/pages/2/text")
    page = reply.json()
    assert (page["page"], page["label"], page["placed"], page["direction"]) == (2, "ii", True, "ltr")
    assert (page["width"], page["height"]) == (595, 842)
    assert page["end"] - page["start"] == len(page["text"])
    words = {tuple(word[:2]): word[2:] for word in page["words"]}
    at = page["text"].index("otter") + page["start"]
    assert words[at, at + 5][0] == pytest.approx(60 + pymupdf.get_text_length("The sea ", fontsize=10), abs=0.2)
    (heading,) = page["headings"]
    slices = [page["text"][start - page["start"] : end - page["start"]] for start, end in page["paragraphs"]]
    assert heading["title"] == HEADINGS[1] == slices[0]
    assert [heading["start"], heading["end"]] == page["paragraphs"][0]
    assert slices[1].startswith("The sea otter")
    assert page["links"] == []
    assert reply.headers["cache-control"] == "private, no-cache"
    tag = reply.headers["etag"]
    assert client.get(f"/papers/{paper}/pages/2/text", headers={"If-None-Match": tag}).status_code == 304
    assert client.get(f"/papers/{paper}/pages/1/text", headers={"If-None-Match": tag}).status_code == 200


def test_a_link_inside_the_file(client: TestClient, paper: str) -> None:
    assert client.get(f"/papers/{paper}/pages/1/text").json()["links"] == [
        {"box": [60.0, 300.0, 90.0, 310.0], "page": 3, "uri": "", "at": None}
    ]


def test_pages_that_are_not_there(client: TestClient, paper: str) -> None:
    refusal(client.get(f"/papers/{paper}/pages/4/text"), 404)
    refusal(client.get(f"/papers/{NOBODY}/pages/1/text"), 404)
    refusal(client.get(f"/papers/{paper}/pages/0/text"), 422)


def test_the_outline_and_the_sizes_of_a_paper(client: TestClient, paper: str) -> None:
    details = client.get(f"/papers/{paper}").json()
    assert details["sizes"] == [[595.0, 842.0], [595.0, 842.0], [400.0, 842.0]]
    outline = [(entry["title"], entry["level"], entry["page"]) for entry in details["outline"]]
    assert outline == [(title, 1, number) for number, title in enumerate(HEADINGS, 1)]
    pages = [client.get(f"/papers/{paper}/pages/{number}/text").json() for number in (1, 2, 3)]
    assert [entry["start"] for entry in details["outline"]] == [page["headings"][0]["start"] for page in pages]


def test_a_newer_file_at_the_same_path_has_its_own_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    (tmp_path / "papers").mkdir()
    seen: list[tuple[float, int, bool]] = []
    for width, top in ((595, 60), (300, 160)):
        with pymupdf.open() as document:
            document.new_page(width=width).insert_textbox((20, top, 280, 500), f"{PROSE} {PROSE}")
            (tmp_path / "papers" / "kelp.pdf").write_bytes(document.tobytes())
        app = small_app(tmp_path)
        if not seen:
            client = client_of(app)
        else:
            app.run()
        paper = papers_by_file(client)["kelp.pdf"]["id"]
        text = client.get(f"/papers/{paper}/pages/1/text").json()
        picture = client.get(f"/papers/{paper}/pages/1.png", params={"dpi": 72}).content
        sizes = client.get(f"/papers/{paper}").json()["sizes"]
        seen.append((sizes[0][0], struct.unpack(">I", picture[16:20])[0], text["words"][0][3] > 150))
    assert seen == [(595, 595, False), (300, 300, True)]


def test_a_paper_without_its_file_has_no_sizes_and_no_places(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_textbox((60, 60, 500, 300), f"{PROSE} {PROSE}")
    (tmp_path / "papers").mkdir()
    document.save(tmp_path / "papers" / "kelp.pdf")
    app = small_app(tmp_path)
    (tmp_path / "papers" / "kelp.pdf").unlink()
    with client_of(app) as client:
        paper = papers_by_file(client)["kelp.pdf"]["id"]
        assert client.get(f"/papers/{paper}").json()["sizes"] == []
        refusal(client.get(f"/papers/{paper}/pages/1/text"), 422)
        assert client.get(f"/papers/{paper}/find", params={"words": "kelp"}).json()["count"] == 2


@pytest.mark.parametrize(("dpi", "width"), [("", 1240), ("?dpi=72", 595), ("?dpi=36", 298)])
def test_a_picture_has_the_dots_that_are_wanted(client: TestClient, paper: str, dpi: str, width: int) -> None:
    png = client.get(f"/papers/{paper}/pages/1.png{dpi}").content
    assert struct.unpack(">I", png[16:20])[0] == pytest.approx(width, abs=1)


@pytest.mark.parametrize("dpi", [35, 401, "many"])
def test_a_picture_of_other_sizes_is_refused(client: TestClient, paper: str, dpi: object) -> None:
    refusal(client.get(f"/papers/{paper}/pages/1.png?dpi={dpi}"), 422)


def test_words_are_found_on_all_pages(client: TestClient, paper: str) -> None:
    places = client.get(f"/papers/{paper}/find", params={"words": "SEA  Ótter"}).json()
    assert places["count"] == 18
    assert [page for *_, page in places["hits"]] == [1] * 6 + [2] * 6 + [3] * 6
    page = client.get(f"/papers/{paper}/pages/3/text").json()
    start, end, _ = places["hits"][-1]
    assert page["text"][start - page["start"] : end - page["start"]] == "sea otter"
    assert client.get(f"/papers/{paper}/find", params={"words": "  "}).json() == {"count": 0, "hits": []}
    refusal(client.get(f"/papers/{NOBODY}/find", params={"words": "kelp"}), 404)


def test_json_is_compressed_and_nothing_else_is(client: TestClient, paper: str) -> None:
    def encoding(path: str) -> str | None:
        return client.get(path, headers={"Accept-Encoding": "gzip"}).headers.get("content-encoding")

    assert encoding(f"/papers/{paper}/pages/1/text") == "gzip"
    assert [encoding(f"/papers/{paper}/pages/1.png"), encoding(f"/pdf/{paper}"), encoding("/")] == [None] * 3
    with client.stream("GET", f"/papers/{paper}/pages/1/text", headers={"Accept-Encoding": "gzip"}) as reply:
        assert gzip.decompress(b"".join(reply.iter_raw())).startswith(b'{"page":1,')
    plain = client.get(f"/papers/{paper}/pages/1/text", headers={"Accept-Encoding": "identity"})
    assert plain.headers.get("content-encoding") is None
    message = {"message": "How does a sea otter sleep?"}
    with client.stream("POST", "/chat/stream", json=message, headers={"Accept-Encoding": "gzip"}) as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        assert events.headers.get("content-encoding") is None


@pytest.mark.parametrize(
    ("text", "words", "hits"),
    [
        ("The o\ufb03ce of Poincar\u00e9.", "OFFICE", ["o\ufb03ce"]),
        ("The o\ufb03ce of Poincar\u00e9.", "poincare", ["Poincar\u00e9"]),
        ("A built-in rule", "builtin", ["built-in"]),
        ("A built-in rule", "built in", ["built-in"]),
        ("A built-\nin rule", "built-in rule", ["built-\nin rule"]),
        ("sea\n\notter", "sea otter", ["sea\n\notter"]),
        ("seaotter", "sea otter", []),
        ("the grass, e.g. moss", "e.g.", ["e.g"]),  # not "e g" of "the grass"
        ("starts", "art", ["art"]),
        ("aaaa", "aa", ["aa", "aa"]),
        ("a \u00bd) b", "2", ["\u00bd"]),  # two letters, as many as the word has characters
        ("(\ufb01 x", "f", ["\ufb01"]),
        ("5 % of all", "%", ["%"]),
        ("anything", "", []),
    ],
)
def test_find_words(text: str, words: str, hits: list[str]) -> None:
    places = find_words(text, words)
    assert [text[start:end] for start, end in places.spans] == hits
    assert places.total == len(hits)


def test_all_hits_are_counted_and_the_first_are_listed() -> None:
    places = find_words("otter " * 5000, "otter")
    assert (places.total, len(places.spans)) == (5000, MOST_HITS)


def test_words_are_looked_for_quickly_in_a_hostile_text() -> None:
    def look(size: int) -> None:
        assert find_words("a" * size, f"{'a' * 250} {'a' * 249}").total == 0

    look(1000)
    began = process_time()
    look(100_000)
    assert process_time() - began < 1.5  # 0.3 s; letter by letter it takes 3 s


def test_the_span_of_a_heading() -> None:
    text = "Section 5.2. Leader\nelection\n\nRaft uses timers."
    section = PaperSection(100, 100 + len(text), 1, "5.2", "Leader election", "other")
    start, end = heading_span(section, text)
    assert text[start - 100 : end - 100] == "Section 5.2. Leader\nelection"
    assert heading_span(section, "Wholly other\nwords") == (100, 112)


def test_paragraphs_are_cut_at_blank_lines_and_headings() -> None:
    text = "Head\nOne.\n\n Two.\n \nThree."
    assert [text[slice(*span)] for span in paragraphs(text, [0, 4])] == ["Head", "One.", "Two.", "Three."]


def test_the_direction_of_a_text() -> None:
    assert reads_right_to_left("12 לוטרת הים (otter) חיה בים")
    assert not reads_right_to_left("The word לוטרת means otter.")
    assert not reads_right_to_left("")


def test_a_cache_keeps_the_last_values_within_its_bytes() -> None:
    made: list[str] = []

    def make(value: str) -> str:
        made.append(value)
        return value

    cache = Cache[str](6, len)
    for value in ("aaa", "bbb", "aaa", "ccc", "aaa", "bbb", "too long for it", "too long for it"):
        assert cache.get(value, lambda value=value: make(value)) == value  # type: ignore[misc]
    assert made == ["aaa", "bbb", "ccc", "bbb", "too long for it", "too long for it"]


def test_who_asks_for_a_value_that_is_being_made_waits_for_it() -> None:
    cache, made, begun, go_on = Cache[str](6, len), [], Event(), Event()

    def make() -> str:
        made.append(1)
        begun.set()
        assert go_on.wait(60)
        if len(made) == 1:
            raise ValueError("only the first time")
        return "aaa"

    with ThreadPoolExecutor() as pool:
        first = pool.submit(cache.get, "a", make)
        assert begun.wait(60)
        others = [pool.submit(cache.get, "a", make) for _ in range(3)]
        go_on.set()
        assert [other.result(60) for other in others] == ["aaa"] * 3
        with pytest.raises(ValueError, match="only the first time"):
            first.result(60)
    assert len(made) == 2
