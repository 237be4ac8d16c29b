"""Which papers a question names, and which one someone means by a name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from folio.errors import NotKnown, UsageError
from folio.papers.metadata import simple_metadata
from folio.papers.model import Paper
from folio.search.names import PaperNames, papers_named, the_paper
from tests.helpers.factories import hit_on
from tests.helpers.known_papers import known_paper

pytestmark = pytest.mark.fast


def paper(file: str, title: str) -> Paper:
    return replace(hit_on("Text.", file=file).paper, metadata=simple_metadata(title))


SHELF = [
    paper("1810.04805v2.pdf", "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding"),
    paper("roberta.pdf", "RoBERTa: A Robustly Optimized BERT Pretraining Approach"),
    paper("1908.10084.pdf", "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks"),
    paper("systems/gfs.pdf", "The Google File System"),
    paper("raft-2014.pdf", "In Search of an Understandable Consensus Algorithm (Extended Version)"),
    paper("crdt_report.pdf", "Conflict-free Replicated Data Types"), paper("pr.pdf", "The PageRank Citation Ranking"),
    paper("gpt3.pdf", "Language Models are Few-Shot Learners"), paper("main.pdf", "Attention Is All You Need"),
    paper("jose.00013.pdf", "A course on waves"), paper("paper.pdf", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "files"),
    [
        ("What is BERT?", ["1810.04805v2.pdf"]), ("what is bert", ["1810.04805v2.pdf"]),
        ("What are BERT's layers in BERT-based models?", ["1810.04805v2.pdf"]),
        ("What is RoBERTa trained on?", ["roberta.pdf"]),
        ("Is RoBERTa better than BERT?", ["roberta.pdf", "1810.04805v2.pdf"]),
        ("What does Sentence-BERT add?", ["1908.10084.pdf"]), ("What does sentence bert add?", ["1908.10084.pdf"]),
        ("What is the chunk size of GFS?", ["systems/gfs.pdf"]), ("gfs chunk size", ["systems/gfs.pdf"]),
        ("Who wrote the Google File System?", ["systems/gfs.pdf"]),
        ("Summarise google file system", ["systems/gfs.pdf"]), ("How does Raft elect a leader?", ["raft-2014.pdf"]),
        ("What are CRDTs?", ["crdt_report.pdf"]), ("How is PageRank computed?", ["pr.pdf"]),
        ("What can GPT-3 do?", ["gpt3.pdf"]), ("what can gpt 3 do", ["gpt3.pdf"]),
        ("What does 'Attention is all you need' propose?", ["main.pdf"]),
        ("What is jose.00013 about?", ["jose.00013.pdf"]), ("What is in raft-2014.pdf?", ["raft-2014.pdf"]),
        ("What is 1908.10084 about?", ["1908.10084.pdf"]),
        ("Compare Raft with the Google File System", ["raft-2014.pdf", "systems/gfs.pdf"]),
        ("What is the main point of this paper?", []),
        ("What do jose and others say about sentences and systems?", []),
        ("How do ALBERT, BERTology and drafts differ?", []), ("What is attention?", []),
        ("What is a language model?", []), ("", []), ("\ud800?", []),
    ],
)  # fmt: skip
def test_papers_meant(question: str, files: list[str]) -> None:
    assert [paper.file for paper in PaperNames(SHELF).meant(question)] == files


def test_an_acronym_is_written_as_one_in_a_bounded_question() -> None:
    sad = [paper("x1.pdf", "Search Across Databases"), paper("x2.pdf", "Systematic Audit of Data")]
    assert PaperNames(sad).meant("Why is it sad?") == ()
    assert PaperNames(sad).meant("Why is SAD used?") == tuple(sad)
    assert PaperNames(SHELF).meant("word " * 5_000 + "RoBERTa") == ()
    assert [paper.file for paper in PaperNames(SHELF).meant("word " * 300 + "RoBERTa")] == ["roberta.pdf"]


def known(id: str, file: str, title: str, **more: Any) -> Paper:
    return known_paper(file, id * 64, title=title, **more)


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
        ("copies/consensus.pdf", [RAFT]), ("ongaro2014search", [RAFT]), ("paxos.pdf", [PAXOS]),
        ("arXiv:1706.03762", [ATTENTION]), ("1706.03762", [ATTENTION]), ("1706.03762v5", [ATTENTION]),
        ("attention is all you need", [ATTENTION]), ("Rafts of Otters", [RAFTS]), ("twins", TWINS),
        ("2/twins", TWINS[1:]), ("dddddd", [RAFTS]), ("d" * 64, [RAFTS]), ("ddddd", []), ("otter", [RAFTS]),
        ("final otters", [RAFTS]),
        ("consensus understand", [RAFT]),  # the last word may be a beginning
        ("understand consensus", []), ("_", []), ("raf", [RAFT, RAFTS]), ("nderstandable", []), ("ousterhout", []),
        ("", []), ("?!", []),
    ],
)  # fmt: skip
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


RAFT_PAPER = paper("main.pdf", "On Otters")


def known_as_raft(word: str) -> Paper | None:
    return RAFT_PAPER if word.casefold() == "raft" else None


def test_a_paper_is_known_by_a_common_name() -> None:
    names = PaperNames([RAFT_PAPER, *SHELF[:4]], known_as_raft)
    assert [each.file for each in names.meant("How do Raft and GFS differ?")] == ["main.pdf", "systems/gfs.pdf"]
    assert names.called("raft") == (RAFT_PAPER,)
    assert names.meant("Who invented Raft?", by_use=False) == ()
    assert PaperNames(SHELF[:4], known_as_raft).meant("What is Raft?") == ()  # not one of these papers


def test_titles_and_files_go_before_the_names_in_the_text() -> None:
    shelf = [paper("main.pdf", "Rafts of Otters"), paper("raft-2014.pdf", "In Search of Consensus")]
    assert the_paper("raft-2014", shelf, {}, known_as_raft).file == "raft-2014.pdf"
    assert the_paper("otters", shelf, {}, known_as_raft).file == "main.pdf"
    with pytest.raises(UsageError, match="fits 2 papers"):
        the_paper("r", [*shelf, paper("r2.pdf", "Rivers")][1:], {}, known_as_raft)
    with pytest.raises(NotKnown, match="No paper in the index is called “raft”"):
        the_paper("raft", [RAFT_PAPER], {})
    assert the_paper("raft", [RAFT_PAPER], {}, known_as_raft) == RAFT_PAPER
