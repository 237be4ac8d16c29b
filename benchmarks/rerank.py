"""The models on onnxruntime compared with sentence-transformers on torch: same weights, texts and process, alternating.

python benchmarks/rerank.py articles.json                     trains a cross-encoder for a minute, then compares
python benchmarks/rerank.py articles.json --model models/ms-marco-MiniLM-L-6-v2
python benchmarks/rerank.py articles.json --seconds 5 --questions 4 --runs 1

articles.json is in COVID-QA's format (docs/evaluation-set.md). With random weights all passages would score alike, so a
cross-encoder is trained on the body of the built-in model. The first half of the articles gives the training pairs:
passages with the answer, and others of the same article. The second half gives the questions, with 20 passages each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.models.cross_encoder import CrossEncoderReranker
from folio.models.minilm import BuiltinEmbedder
from folio.papers.metadata import NO_METADATA
from folio.papers.model import Chunk, Hit, PageMap, Paper
from folio.question.question import Question
from scripts.make_minilm import publishers_folder

PASSAGES = 20  # reranked per question
TOP = 4  # kept after reranking
PASSAGE_CHARS, OVERLAP_CHARS = 1500, 200
TRAINING_CHARS = 400  # of the passage in a training pair


@dataclass(frozen=True, slots=True)
class RerankTask:
    """A question and the passages to rank for it."""

    question: str
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Seconds with torch and with Folio, and how well their results agree: a share of questions, or a mean cosine."""

    what: str
    torch_s: float
    folio_s: float
    agreement: float
    agreement_text: str

    @property
    def ratio(self) -> float:
        return self.torch_s / self.folio_s


def measure(
    path: Path, runs: int, *, seconds: float = 60, questions: int = 40, model: Path | None = None
) -> list[Comparison]:
    """Compare on the questions of these articles. Without a model, a cross-encoder is trained for so many seconds."""
    # The libraries read these when imported. Everything is on the disk, so no network is needed.
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    rng = random.Random(1)
    articles = json.loads(path.read_text(encoding="utf-8"))
    half = len(articles) // 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = model or Path(temporary, "cross-encoder")
        if model is None:
            train(folder, training_pairs(articles[:half], rng), seconds)
        tasks = rerank_tasks(articles[half:], rng)[:questions]
        return compare(folder, tasks, runs, Path(temporary, "onnx"))


def rerank_tasks(articles: Sequence[dict[str, Any]], rng: random.Random) -> list[RerankTask]:
    """Each question with PASSAGES passages: those of its article first, then others."""
    by_article = [
        [text[start : start + PASSAGE_CHARS] for start in range(0, len(text), PASSAGE_CHARS - OVERLAP_CHARS)]
        for text in _texts(articles)
    ]
    tasks = []
    for index, article in enumerate(articles):
        others = [passage for number, own in enumerate(by_article) if number != index for passage in own]
        own = rng.sample(by_article[index], min(PASSAGES, len(by_article[index])))
        passages = (*own, *rng.sample(others, max(0, min(PASSAGES - len(own), len(others)))))
        tasks += [RerankTask(question["question"].strip(), passages) for question in article["questions"]]
    rng.shuffle(tasks)
    return tasks


def training_pairs(articles: Sequence[dict[str, Any]], rng: random.Random) -> list[tuple[str, str, float]]:
    """(question, passage, label): 1 if the passage has the answer, else 0. Both labels are about equally frequent."""
    pairs = []
    for text, article in zip(_texts(articles), articles, strict=True):
        for question in article["questions"]:
            start = max(0, int(question["start"]) - rng.randrange(TRAINING_CHARS // 2))
            other = rng.randrange(max(1, len(text) - TRAINING_CHARS))
            pairs.append((question["question"].strip(), text[start : start + TRAINING_CHARS], 1.0))
            if abs(other - start) > TRAINING_CHARS:
                pairs.append((question["question"].strip(), text[other : other + TRAINING_CHARS], 0.0))
    rng.shuffle(pairs)
    return pairs


def _texts(articles: Sequence[dict[str, Any]]) -> list[str]:
    return [str(article["text"]) for article in articles]


def train(folder: Path, pairs: Sequence[tuple[str, str, float]], seconds: float) -> None:
    """Train a cross-encoder on the built-in model's body and save it in sentence-transformers' format."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(publishers_folder(), model_max_length=512)
    model = AutoModelForSequenceClassification.from_pretrained(publishers_folder(), num_labels=1)
    for name, weights in model.named_parameters():  # the lower half is frozen, so that a minute is enough
        weights.requires_grad = not name.startswith(
            ("bert.embeddings", *(f"bert.encoder.layer.{n}." for n in range(3)))
        )
    optimizer = torch.optim.AdamW((weights for weights in model.parameters() if weights.requires_grad), lr=2e-4)
    began, step, size = perf_counter(), 0, 16
    while perf_counter() - began < seconds:
        batch = [pairs[number % len(pairs)] for number in range(step * size, (step + 1) * size)]
        questions, passages, labels = zip(*batch, strict=True)
        inputs = tokenizer(list(questions), list(passages), padding=True, truncation=True, return_tensors="pt")
        logits = model(**inputs).logits[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    print(f"trained {step} steps of {size} pairs in {seconds:.0f} s, last loss {loss.item():.3f}", file=sys.stderr)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def median_seconds(runs: int, *jobs: Callable[[], object]) -> list[float]:
    """The median seconds of each job over so many alternating runs, after a warm-up run that does not count."""
    times: list[list[float]] = [[] for _ in jobs]
    for run in range(runs + 1):
        for own, job in zip(times, jobs, strict=True):
            began = perf_counter()
            job()
            if run:
                own.append(perf_counter() - began)
    return [statistics.median(own) for own in times]


def as_hits(passages: Sequence[str]) -> list[Hit]:
    """Each passage as the only one of its paper."""
    papers = [Paper(str(n), "", NO_METADATA, PageMap((0,), ("",)), len(text), 1) for n, text in enumerate(passages)]
    return [
        Hit(Chunk(n + 1, paper.id, 0, len(text)), paper, text, 0.0)
        for n, (paper, text) in enumerate(zip(papers, passages, strict=True))
    ]


def compare(folder: Path, tasks: Sequence[RerankTask], runs: int, cache: Path) -> list[Comparison]:
    """Rerank, embed questions, and embed passages, each with torch and with Folio. cache: for ONNX graphs."""
    from sentence_transformers import CrossEncoder, SentenceTransformer

    torch_reranker = CrossEncoder(str(folder), device="cpu", local_files_only=True)
    folio_reranker = CrossEncoderReranker(folder, folder.name, cache)
    hits = [as_hits(task.passages) for task in tasks]
    torch_scores: list[Any] = []
    folio_scores: list[Any] = []

    def rerank_with_torch() -> None:
        torch_scores[:] = [
            torch_reranker.predict([(task.question, text) for text in task.passages], show_progress_bar=False)
            for task in tasks
        ]

    def rerank_with_folio() -> None:
        folio_scores[:] = [
            folio_reranker.scores(Question(task.question), own, {}) for task, own in zip(tasks, hits, strict=True)
        ]

    rerank = median_seconds(runs, rerank_with_torch, rerank_with_folio)
    same = [set(_top(a)) == set(_top(b)) for a, b in zip(torch_scores, folio_scores, strict=True)]
    spread = statistics.mean(float(np.std(scores)) for scores in torch_scores)
    agreement_text = f"same top {TOP} for {sum(same)} of {len(same)}; standard deviation of the scores {spread:.3f}"

    torch_embedder = SentenceTransformer(str(publishers_folder()), device="cpu", local_files_only=True)
    folio_embedder = BuiltinEmbedder()
    # Short enough that neither truncates them: sentence-transformers reads 256 tokens of a text.
    texts = list(dict.fromkeys(text[:800] for task in tasks for text in task.passages))[:64]
    questions = [task.question for task in tasks]

    def compare_vectors(what: str, torch_s: float, folio_s: float, inputs: list[str]) -> Comparison:
        ours, theirs = np.asarray(folio_embedder.embed_passages(inputs)), np.asarray(encode(inputs))
        cosine = float((ours * theirs).sum(axis=1).mean())
        return Comparison(what, torch_s, folio_s, cosine, f"mean cosine {cosine:.4f}")

    def encode(inputs: list[str]) -> Any:
        return torch_embedder.encode(inputs, normalize_embeddings=True, show_progress_bar=False)

    query = median_seconds(
        runs,
        lambda: [encode([question]) for question in questions],
        # Not embed_query, which caches recent texts.
        lambda: [folio_embedder.embed_passages([question]) for question in questions],
    )
    passages = median_seconds(runs, lambda: encode(texts), lambda: folio_embedder.embed_passages(texts))
    return [
        Comparison(
            f"rerank {PASSAGES} passages",
            rerank[0] / len(tasks),
            rerank[1] / len(tasks),
            statistics.mean(same),
            agreement_text,
        ),
        compare_vectors("embed a question", query[0] / len(tasks), query[1] / len(tasks), questions),
        compare_vectors(f"embed {len(texts)} passages", passages[0], passages[1], texts),
    ]


def _top(scores: Sequence[float]) -> list[int]:
    return [int(index) for index in np.argsort(-np.asarray(scores), kind="stable")[:TOP]]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Compare the models on onnxruntime with sentence-transformers on torch."
    )
    parser.add_argument("articles", type=Path, help="articles with questions and the positions of their answers")
    parser.add_argument("--model", type=Path, help="a cross-encoder's folder (default: train one)")
    parser.add_argument("--seconds", type=float, default=60, help="training time (default: 60)")
    parser.add_argument("--questions", type=int, default=40, help="questions to ask (default: 40)")
    parser.add_argument("--runs", type=int, default=5, help="alternating runs per median (default: 5)")
    arguments = parser.parse_args(argv)
    rows = measure(
        arguments.articles,
        arguments.runs,
        seconds=arguments.seconds,
        questions=arguments.questions,
        model=arguments.model,
    )
    print("| what | torch | Folio | ratio | agreement |\n|---|---|---|---|---|")
    for row in rows:
        times = f"{row.torch_s * 1000:.1f} ms | {row.folio_s * 1000:.1f} ms | {row.ratio:.2f}"
        print(f"| {row.what} | {times} | {row.agreement_text} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
