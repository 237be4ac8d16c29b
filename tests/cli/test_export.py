"""`folio export`: what the pages of papers and answers say, and how they are linked."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from folio.cli import export
from folio.papers.metadata import Field, Metadata, PersonName
from folio.store import notes
from folio.store.note_places import quote_at
from tests.helpers.web_client import ask, client_of, small_app


def linked(text: str) -> set[str]:
    return set(re.findall(r"\[\[([^\[\]|#]+)\]\]", text))


def test_papers_notes_and_answers_become_linked_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = small_app(tmp_path, LLM="builtin")
    with client_of(app) as client:
        asked = ask(client, "What length has the Aletsch glacier?")
    assert asked["citations"]
    with closing(app.open_library()) as library:
        glaciers = next(paper for paper in library.papers() if paper.id == asked["citations"][0]["paper"])
        said = Metadata(
            title=Field("Ice: <b>#1</b> [[x]]", "person", True), year=Field(2021, "person", True),
            authors=Field((PersonName("Byte", "Ada"),), "person", True),
            tags=Field(("big ice", "2021"), "person", True),
        )  # fmt: skip
        library.set_metadata(glaciers.id, "person", said)
        notes.add(library.database, [quote_at(library, glaciers, 0, 18)], text="Check *this*.")
    vault = tmp_path / "vault"
    assert export._run(app, vault) == 0
    assert "3 new" in capsys.readouterr().out
    papers = {path.stem: path.read_text(encoding="utf-8") for path in (vault / "papers").glob("*.md")}
    (answer,) = (vault / "answers").glob("*.md")
    name = next(stem for stem in papers if stem.startswith("Ice b 1 b x ("))
    page = papers[name]
    for line in ('title: "Ice: <b>#1</b> [[x]]"', 'authors: ["Ada Byte"]', "year: 2021", 'tags: ["big-ice"]'):
        assert f"\n{line}\n" in page
    assert {name} == linked(answer.read_text(encoding="utf-8"))
    body = page.partition("---\n# ")[2]
    assert linked(body) == {answer.stem}
    shown = MarkdownIt().render(f"# {body}")
    assert "<h1>Ice: &lt;b&gt;#1&lt;/b&gt; [[x]]</h1>" in shown
    assert "<p>Check *this*.</p>" in shown
    assert export._run(app, vault) == 0
    assert "nothing to change" in capsys.readouterr().out
