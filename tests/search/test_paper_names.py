"""Which papers a question names, and which one someone means by a name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from folio.errors import NotKnown, UsageError
from folio.paper_metadata import Field, Metadata, simple_metadata
from folio.search.paper_names import paper_known_by, papers_meant, papers_named, the_paper
from folio.types import PageMap, Paper
from tests.helpers.factories import hit_on


def paper(file: str, title: str) -> Paper:
    return replace(hit_on("Text.", file=file).paper, metadata=simple_metadata(title))


SHELF = [
    paper("1810.04805v2.pdf", "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding"),
    paper("roberta.pdf", "RoBERTa: A Robustly Optimized BERT Pretraining Approach"),
    paper("1908.10084.pdf", "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks"),
    paper("systems/gfs.pdf", "The Google File System"),
    paper("raft-2014.pdf", "In Search of an Understandable Consensus Algorithm (Extended Version)"),
    paper("crdt_report.pdf", "Conflict-free Replicated Data Types"),
    paper("pr.pdf", "The PageRank Citation Ranking"),
    paper("gpt3.pdf", "Language Models are Few-Shot Learners"),
    paper("main.pdf", "Attention Is All You Need"),
    paper("jose.00013.pdf", "A course on waves"),
    paper("paper.pdf", ""),
]


@pytest.mark.parametrize(
    ("question", "files"),
    [
        ("What is BERT?", ["1810.04805v2.pdf"]),
        ("what is bert", ["1810.04805v2.pdf"]),
        ("What are BERT's layers in BERT-based models?", ["1810.04805v2.pdf"]),
        ("What is RoBERTa trained on?", ["roberta.pdf"]),
        ("Is RoBERTa better than BERT?", ["roberta.pdf", "1810.04805v2.pdf"]),
        ("What does Sentence-BERT add?", ["1908.10084.pdf"]),
        ("What does sentence bert add?", ["1908.10084.pdf"]),
        ("What is the chunk size of GFS?", ["systems/gfs.pdf"]),
        ("gfs chunk size", ["systems/gfs.pdf"]),
        ("Who wrote the Google File System?", ["systems/gfs.pdf"]),
        ("Summarise google file system", ["systems/gfs.pdf"]),
        ("How does Raft elect a leader?", ["raft-2014.pdf"]),
        ("What are CRDTs?", ["crdt_report.pdf"]),
        ("How is PageRank computed?", ["pr.pdf"]),
        ("What can GPT-3 do?", ["gpt3.pdf"]),
        ("what can gpt 3 do", ["gpt3.pdf"]),
        ("What does 'Attention is all you need' propose?", ["main.pdf"]),
        ("What is jose.00013 about?", ["jose.00013.pdf"]),
        ("What is in raft-2014.pdf?", ["raft-2014.pdf"]),
        ("What is 1908.10084 about?", ["1908.10084.pdf"]),
        ("Compare Raft with the Google File System", ["raft-2014.pdf", "systems/gfs.pdf"]),
        ("What is the main point of this paper?", []),
        ("What do jose and others say about sentences and systems?", []),
        ("How do ALBERT, BERTology and drafts differ?", []),
        ("What is attention?", []),
        ("What is a language model?", []),
        ("", []),
        ("\ud800?", []),
    ],
)
def test_papers_meant(question: str, files: list[str]) -> None:
    assert [paper.file for paper in papers_meant(question, SHELF)] == files


def test_an_acronym_is_written_as_one() -> None:
    sad = [paper("x1.pdf", "Search Across Databases"), paper("x2.pdf", "Systematic Audit of Data")]
    assert papers_meant("Why is it sad?", sad) == ()
    assert papers_meant("Why is SAD used?", sad) == tuple(sad)


def test_a_long_question_is_bounded() -> None:
    assert papers_meant("word " * 5_000 + "RoBERTa", SHELF) == ()
    assert [paper.file for paper in papers_meant("word " * 300 + "RoBERTa", SHELF)] == ["roberta.pdf"]


# Names that someone gives


def known(id: str, file: str, title: str, **more: str) -> Paper:
    fields = {name: Field(value, "page", True) for name, value in {"title": title, **more}.items()}
    return Paper(id * 64, file, Metadata(**fields), PageMap((0,), ("",)), 10, 1, ())  # type: ignore[arg-type]


RAFT = known("a", "raft.pdf", "In Search of an Understandable Consensus Algorithm", citation_key="ongaro2014search")
PAXOS = known("b", "old/paxos.pdf", "The Part-Time Parliament")
ATTENTION = known("c", "1706.03762v5.pdf", "Attention Is All You Need", arxiv="1706.03762v5")
RAFTS = known("d", "rafts-of-otters_final.pdf", "Rafts of Ottérs")
SCAN = known("e", "scan.pdf", "")
TWINS = [known("f", "1/twins.pdf", "Twins"), known("0", "2/twins.pdf", "Twins")]
PAPERS = [RAFT, PAXOS, ATTENTION, RAFTS, SCAN, *TWINS]
FILES = {each.id: [each.file] for each in PAPERS} | {RAFT.id: ["raft.pdf", "copies/consensus.pdf"]}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("raft", [RAFT]),  # its key, although another's title has the word too
        ("RAFT.pdf", [RAFT]),
        ("consensus", [RAFT]),  # its other file
        ("copies/consensus.pdf", [RAFT]),
        ("ongaro2014search", [RAFT]),
        ("paxos.pdf", [PAXOS]),
        ("arXiv:1706.03762", [ATTENTION]),
        ("1706.03762", [ATTENTION]),
        ("1706.03762v5", [ATTENTION]),
        ("attention is all you need", [ATTENTION]),
        ("Rafts of Otters", [RAFTS]),
        ("twins", TWINS),
        ("2/twins", TWINS[1:]),
        ("dddddd", [RAFTS]),
        ("d" * 64, [RAFTS]),
        ("ddddd", []),
        ("otter", [RAFTS]),
        ("final otters", [RAFTS]),
        ("consensus understand", [RAFT]),  # the last word may be a beginning
        ("understand consensus", []),
        ("_", []),
        ("raf", [RAFT, RAFTS]),
        ("nderstandable", []),
        ("ousterhout", []),
        ("", []),
        ("?!", []),
    ],
)
def test_a_name_means_papers(name: str, found: list[Paper]) -> None:
    assert papers_named(name, PAPERS, FILES) == found


def test_a_name_must_mean_one_paper() -> None:
    assert the_paper("raft", PAPERS, FILES) == RAFT
    with pytest.raises(NotKnown, match="No paper in the index is called “quorums”"):
        the_paper("quorums", PAPERS, FILES)
    with pytest.raises(UsageError) as refused:
        the_paper("raf", PAPERS, FILES)
    assert refused.value.happened == (
        "“raf” fits 2 papers: raft.pdf (aaaaaaaaaaaa); rafts-of-otters_final.pdf (dddddddddddd)."
    )
    many = [known(str(number), f"{number}/twins.pdf", "Twins") for number in range(8)]
    with pytest.raises(UsageError, match=r"fits 8 papers: .*4/twins\.pdf \(444444444444\) and 3 more\."):
        the_paper("twins", many, {})


ON_RAFT = "Raft is a consensus algorithm. In Raft, a leader is elected. " * 8
TEXTS = {
    "raft-2014.pdf": f"Otters float in a raft. {ON_RAFT} It pays attention to attention, " + "and attention. " * 20,
    "main.pdf": "Attention helps. " * 3 + "This is unlike Raft. We count on a raft of tricks.",
    "pr.pdf": "PageRank ranks. " * 12 + "Gossip spreads. " * 12,
    "gpt3.pdf": "Gossip spreads. " * 11 + "Few Shots. " * 9,
}


def text_of(paper: Paper) -> str:
    return TEXTS.get(paper.file, "")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("raft", "raft-2014.pdf"),
        ("RAFT", "raft-2014.pdf"),
        ("pagerank", "pr.pdf"),
        ("attention", None),  # used often, but as a word
        ("gossip", None),  # of two papers
        ("shots", None),  # too rare
        ("raf", None),  # part of a word
        ("Raft leader", None),
        ("the", None),
        ("", None),
    ],
)
def test_a_paper_is_known_by_the_name_that_it_alone_uses(name: str, file: str | None) -> None:
    found = paper_known_by(name, SHELF, text_of)
    assert (found.file if found else None) == file
    assert paper_known_by(name, [], text_of) is None


def test_titles_and_files_go_before_the_names_in_the_text() -> None:
    shelf = [paper("main.pdf", "Rafts of Otters"), paper("raft-2014.pdf", "In Search of Consensus")]
    assert the_paper("raft-2014", shelf, {}, text_of).file == "raft-2014.pdf"
    assert the_paper("otters", shelf, {}, text_of).file == "main.pdf"
    with pytest.raises(UsageError, match="fits 2 papers"):
        the_paper("r", [*shelf, paper("r2.pdf", "Rivers")][1:], {}, text_of)
    with pytest.raises(NotKnown, match="No paper in the index is called “raft”"):
        the_paper("raft", [paper("main.pdf", "On Otters")], {}, text_of)
    assert the_paper("raft", [paper("main.pdf", "On Otters")], {}, lambda _: ON_RAFT).file == "main.pdf"
