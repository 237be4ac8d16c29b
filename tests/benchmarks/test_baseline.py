"""The plain design that Folio is measured against: its arithmetic, its ranks, and that it stands by itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import plain
from benchmarks.plain import MiniLM, PlainDesign, PlainHit, fuse, min_max_scale
from folio.models.minilm import BuiltinEmbedder
from folio.search.langchain import FolioEmbeddings
from tests.helpers.cross_encoders import require_torch
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.fakes import HashingEmbedder
from tests.helpers.paths import ROOT

SPONGES = ("A sponge absorbs its input block by block. Then it squeezes out as many bits as are wanted.",)


def hashing() -> FolioEmbeddings:
    return FolioEmbeddings(HashingEmbedder(256))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    papers = tmp_path_factory.mktemp("papers")
    write_pdf(papers / "otters.pdf", OTTERS)
    write_pdf(papers / "alps" / "glaciers.pdf", GLACIERS)
    write_pdf(papers / "sponges.pdf", SPONGES)
    return papers


@pytest.fixture(scope="module")
def design(folder: Path) -> PlainDesign:
    return PlainDesign.from_papers(folder, hashing())


def found(hits: list[PlainHit]) -> list[tuple[str, int]]:
    return [(hit.paper, hit.page) for hit in hits]


# Arithmetic


@pytest.mark.parametrize(
    ("ranked", "scaled"),
    [
        ([(4, 9.0), (7, 6.0), (1, 5.0)], {4: 1.0, 7: 0.25, 1: 0.0}),
        ([(4, -0.2), (7, -0.6)], {4: 1.0, 7: 0.0}),
        ([(4, 2.0)], {4: 1.0}),
        ([(4, 2.0), (7, 2.0)], {4: 1.0, 7: 1.0}),  # equal scores count whole unless they are nothing
        ([(4, 0.0), (7, 0.0)], {4: 0.0, 7: 0.0}),
    ],
)
def test_a_list_is_scaled_by_its_smallest_and_largest(
    ranked: list[tuple[int, float]], scaled: dict[int, float]
) -> None:
    assert min_max_scale(ranked) == scaled


def test_lists_are_added_seven_to_three() -> None:
    dense = [(1, 0.9), (2, 0.8), (3, 0.5)]
    lexical = [(4, 12.0), (2, 9.0), (5, 2.0)]
    fused = fuse(dense, lexical)
    assert [chunk for chunk, _ in fused] == [2, 1, 4, 3, 5]
    assert [score for _, score in fused] == pytest.approx([0.7 * 0.75 + 0.3 * 0.7, 0.7, 0.3, 0.0, 0.0])


# Papers


def test_a_chunk_a_page_in_the_order_of_the_files(design: PlainDesign) -> None:
    pages = [(chunk.metadata["paper"], chunk.metadata["page"] + 1) for chunk in design.chunks]
    ice, fur = [("alps/glaciers.pdf", page) for page in (1, 2, 3)], [("otters.pdf", page) for page in (1, 2)]
    assert pages == [*ice, *fur, ("sponges.pdf", 1)]


@pytest.mark.parametrize(
    ("question", "paper", "page"),
    [
        ("How many hairs does the fur of a sea otter have?", "otters.pdf", 1),
        ("Where does the gauge for the melt water stand?", "alps/glaciers.pdf", 3),
        ("What does a sponge squeeze out?", "sponges.pdf", 1),
    ],
)
def test_the_page_that_answers_is_first_in_each_ranking(
    design: PlainDesign, question: str, paper: str, page: int
) -> None:
    for ranking in (design.search, design.bm25, design.dense):
        assert found(ranking(question, 1)) == [(paper, page)]


def test_ranks_of_a_question_are_these(design: PlainDesign) -> None:
    question = "How thick is the ice of the Aletsch glacier?"
    length, thickness = ("alps/glaciers.pdf", 1), ("alps/glaciers.pdf", 2)
    stages = design.stages(question)
    assert {stage: found(hits[:2]) for stage, hits in stages.items()} == {
        "dense": [length, thickness],
        "bm25": [thickness, length],
        "fused": [length, thickness],
    }
    assert stages["fused"][:4] == design.search(question, 4)
    assert {hit.score for hit in design.bm25("zyzzyva", 6)} == {0.0}  # no passage has the word
    assert found(design.search("zyzzyva", 6)) == found(design.dense("zyzzyva", 6))


def test_a_damaged_file_is_named_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"^The documents have no text\.$"):
        PlainDesign.from_papers(tmp_path, hashing())
    write_pdf(tmp_path / "sponges.pdf", SPONGES)
    (tmp_path / "broken.pdf").write_bytes(b"no PDF")
    assert len(PlainDesign.from_papers(tmp_path, hashing()).chunks) == 1
    assert capsys.readouterr().err.startswith("Skipped broken.pdf: ")


# Texts


def test_spans_are_of_the_text_that_was_given() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "Words that fill it. " * 20 for number in range(9))
    design = PlainDesign.from_texts([("a", "", text), ("b", "On Otters", OTTERS[0])], hashing())
    hits = design.dense("Paragraph 8", 20)
    # Three paragraphs of 415 characters each, the empty line after them included.
    assert sorted(hit.start for hit in hits if hit.paper == "a") == [0, 1245, 2490]
    assert all(text[hit.start : hit.end] == hit.text for hit in hits if hit.paper == "a")
    assert all(len(hit.text) <= 1500 for hit in hits)
    (other,) = (hit for hit in hits if hit.paper == "b")
    assert (other.text, other.page, other.start, other.end) == (f"On Otters\n\n{OTTERS[0]}", 1, 0, len(OTTERS[0]))


def test_a_title_is_not_repeated_before_its_text() -> None:
    design = PlainDesign.from_texts([("a", "On the fur of otters", f"On the fur\nof otters\n\n{OTTERS[0]}")], hashing())
    assert design.chunks[0].page_content == f"On the fur\nof otters\n\n{OTTERS[0]}"


def test_the_plain_design_imports_nothing_of_folio() -> None:
    assert not re.search(r"^\s*(import|from) folio", (ROOT / "benchmarks" / "plain.py").read_text(), re.MULTILINE)


@pytest.mark.slow
def test_its_model_is_the_one_that_folio_has_built_in() -> None:
    require_torch()
    texts = ["Sea otters sleep in rafts of kelp.", GLACIERS[1]]
    model = MiniLM()
    ours = BuiltinEmbedder().embed_passages(texts)
    assert (ours * model.embed_documents(texts)).sum(axis=1).min() > 0.995  # ours are rounded
    assert float(ours[0] @ np.array(model.embed_query(texts[0]))) > 0.995


@pytest.mark.slow
def test_command_prints_the_passages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_torch()
    assert plain.main([str(folder), "How dense is the fur of otters?", "--top-k", "2"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "1. otters.pdf p. 1 (1.000)"
    assert printed[1].startswith("   Sea otters sleep on their backs")
    assert re.fullmatch(r"2\. otters\.pdf p\. 2 \(0\.\d{3}\)", printed[2])


@pytest.mark.parametrize(
    ("papers", "said"), [("nowhere", "nowhere is not a folder"), ("", "has text; give a folder with PDFs")]
)
def test_command_says_what_is_wrong_with_the_folder(
    papers: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["plain.py", str(tmp_path / papers), "question"])
    with pytest.raises(SystemExit):
        plain.main()
    assert said in capsys.readouterr().err
