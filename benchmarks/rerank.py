"""The models on onnxruntime against sentence-transformers on torch: the same weights, texts and processes, in turn.

python benchmarks/rerank.py articles.json                     trains a cross-encoder for a minute, then compares
python benchmarks/rerank.py articles.json --model models/ms-marco-MiniLM-L-6-v2
python benchmarks/rerank.py articles.json --seconds 5 --questions 4 --runs 1

articles.json is in the form of COVID-QA (docs/evaluation-set.md). Random weights would score all passages alike; so a
cross-encoder is trained on the body of the built-in model: passages with the answer against others of the same article,
for the first half of the articles. The questions of the other half are then asked of 20 passages each.
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

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.models.cross_encoder import CrossEncoderReranker
from folio.models.minilm import BuiltinEmbedder, model_folder
from folio.types import Chunk, Hit, PageMap, Paper

PASSAGES = 20  # that are reranked for a question
TOP = 4  # that are then read
LENGTH, OVERLAP = 1500, 200  # characters of a passage
TRAINED = 400  # characters around an answer, or of another place, that a training pair has


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the passages that it is asked of."""

    question: str
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """Seconds by torch and by Folio, and how well the two agree: a share of questions, or a mean cosine."""

    what: str
    torch_s: float
    folio_s: float
    agreement: float
    agree: str  # the same in words

    @property
    def ratio(self) -> float:
        return self.torch_s / self.folio_s


def measured(
    path: Path, runs: int, *, seconds: float = 60, questions: int = 40, model: Path | None = None
) -> list[Compared]:
    """Trains a cross-encoder where no model is given, and compares over so many questions on articles."""
    # Read when they are imported: everything is on the disk, nothing is asked for.
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    chance = random.Random(1)
    articles = json.loads(path.read_text(encoding="utf-8"))
    half = len(articles) // 2
    with tempfile.TemporaryDirectory() as made:
        folder = model or Path(made, "cross-encoder")
        if model is None:
            train(folder, pairs_of(articles[:half], chance), seconds)
        asked = asked_of(articles[half:], chance)[:questions]
        return compare(folder, asked, runs, Path(made, "onnx"))


def asked_of(articles: Sequence[dict[str, Any]], chance: random.Random) -> list[Asked]:
    """Each question with the passages of its article, filled up from others to PASSAGES."""
    cut = [[text[at : at + LENGTH] for at in range(0, len(text), LENGTH - OVERLAP)] for text in _texts(articles)]
    found = []
    for place, article in enumerate(articles):
        others = [passage for number, own in enumerate(cut) if number != place for passage in own]
        own = chance.sample(cut[place], min(PASSAGES, len(cut[place])))
        passages = (*own, *chance.sample(others, max(0, min(PASSAGES - len(own), len(others)))))
        found += [Asked(question["question"].strip(), passages) for question in article["questions"]]
    chance.shuffle(found)
    return found


def pairs_of(articles: Sequence[dict[str, Any]], chance: random.Random) -> list[tuple[str, str, float]]:
    """Question, passage and 1 where it has the answer, else 0: as many of the one as of the other."""
    found = []
    for text, article in zip(_texts(articles), articles, strict=True):
        for question in article["questions"]:
            begins = max(0, int(question["start"]) - chance.randrange(TRAINED // 2))
            away = chance.randrange(max(1, len(text) - TRAINED))
            found.append((question["question"].strip(), text[begins : begins + TRAINED], 1.0))
            if abs(away - begins) > TRAINED:
                found.append((question["question"].strip(), text[away : away + TRAINED], 0.0))
    chance.shuffle(found)
    return found


def _texts(articles: Sequence[dict[str, Any]]) -> list[str]:
    return [str(article["text"]) for article in articles]


def train(folder: Path, pairs: Sequence[tuple[str, str, float]], seconds: float) -> None:
    """A cross-encoder on the built-in model's body, written to a folder as sentence-transformers reads it."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(model_folder(), model_max_length=512)
    model = AutoModelForSequenceClassification.from_pretrained(model_folder(), num_labels=1)
    for name, weights in model.named_parameters():  # the lower half stays, so that a minute is enough
        weights.requires_grad = not name.startswith(
            ("bert.embeddings", *(f"bert.encoder.layer.{n}." for n in range(3)))
        )
    learner = torch.optim.AdamW((weights for weights in model.parameters() if weights.requires_grad), lr=2e-4)
    began, step, size = perf_counter(), 0, 16
    while perf_counter() - began < seconds:
        some = [pairs[number % len(pairs)] for number in range(step * size, (step + 1) * size)]
        questions, passages, wanted = zip(*some, strict=True)
        given = tokenizer(list(questions), list(passages), padding=True, truncation=True, return_tensors="pt")
        logits = model(**given).logits[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(wanted))
        learner.zero_grad()
        loss.backward()
        learner.step()
        step += 1
    print(f"trained {step} steps of {size} pairs in {seconds:.0f} s, last loss {loss.item():.3f}", file=sys.stderr)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def medians(runs: int, *jobs: Callable[[], object]) -> list[float]:
    """Seconds that each job takes, run in turn; the median of so many runs after one that does not count."""
    times: list[list[float]] = [[] for _ in jobs]
    for run in range(runs + 1):
        for own, job in zip(times, jobs, strict=True):
            began = perf_counter()
            job()
            if run:
                own.append(perf_counter() - began)
    return [statistics.median(own) for own in times]


def hits_of(passages: Sequence[str]) -> list[Hit]:
    papers = [Paper(str(n), "", "", (), None, PageMap((0,), ("",)), len(text), 1) for n, text in enumerate(passages)]
    return [
        Hit(Chunk(n + 1, paper.id, 0, len(text)), paper, text, 0.0)
        for n, (paper, text) in enumerate(zip(papers, passages, strict=True))
    ]


def compare(folder: Path, asked: Sequence[Asked], runs: int, graphs: Path) -> list[Compared]:
    """Reranking, a question embedded, passages embedded; each with torch and with Folio, in turn."""
    from sentence_transformers import CrossEncoder, SentenceTransformer

    reference = CrossEncoder(str(folder), device="cpu", local_files_only=True)
    ours = CrossEncoderReranker(folder, folder.name, graphs)
    hits = [hits_of(one.passages) for one in asked]
    theirs_scored: list[Any] = []
    ours_scored: list[Any] = []

    def by_torch() -> None:
        theirs_scored[:] = [
            reference.predict([(one.question, text) for text in one.passages], show_progress_bar=False) for one in asked
        ]

    def by_folio() -> None:
        ours_scored[:] = [ours.scores(one.question, own, {}) for one, own in zip(asked, hits, strict=True)]

    rerank = medians(runs, by_torch, by_folio)
    same = [set(_top(a)) == set(_top(b)) for a, b in zip(theirs_scored, ours_scored, strict=True)]
    spread = statistics.mean(float(np.std(scores)) for scores in theirs_scored)
    agree = f"top {TOP} the same on {sum(same)} of {len(same)}; scores' standard deviation {spread:.3f}"

    sentences = SentenceTransformer(str(model_folder()), device="cpu", local_files_only=True)
    built_in = BuiltinEmbedder(cache=graphs)
    # Not cut by either: sentence-transformers reads 256 tokens of a text.
    texts = list(dict.fromkeys(text[:800] for one in asked for text in one.passages))[:64]
    questions = [one.question for one in asked]

    def embedded(what: str, torch_s: float, folio_s: float, some: list[str]) -> Compared:
        cosine = float((np.asarray(built_in.embed_passages(some)) * np.asarray(encode(some))).sum(axis=1).mean())
        return Compared(what, torch_s, folio_s, cosine, f"mean cosine {cosine:.4f}")

    def encode(some: list[str]) -> Any:
        return sentences.encode(some, normalize_embeddings=True, show_progress_bar=False)

    query = medians(
        runs,
        lambda: [encode([question]) for question in questions],
        # Anew each time: what was embedded of late is not embedded again.
        lambda: [built_in.embed_passages([question]) for question in questions],
    )
    passages = medians(runs, lambda: encode(texts), lambda: built_in.embed_passages(texts))
    return [
        Compared(
            f"rerank {PASSAGES} passages", rerank[0] / len(asked), rerank[1] / len(asked), statistics.mean(same), agree
        ),
        embedded("embed a question", query[0] / len(asked), query[1] / len(asked), questions),
        embedded(f"embed {len(texts)} passages", passages[0], passages[1], texts),
    ]


def _top(scores: Sequence[float]) -> list[int]:
    return [int(place) for place in np.argsort(-np.asarray(scores), kind="stable")[:TOP]]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Compare the models on onnxruntime with sentence-transformers on torch."
    )
    parser.add_argument("articles", type=Path, help="articles with questions and where their answers stand")
    parser.add_argument("--model", type=Path, help="a cross-encoder's folder; without it one is trained")
    parser.add_argument("--seconds", type=float, default=60, help="of training (default: 60)")
    parser.add_argument("--questions", type=int, default=40, help="that are asked (default: 40)")
    parser.add_argument("--runs", type=int, default=5, help="of each, in turn, for the median (default: 5)")
    arguments = parser.parse_args(argv)
    rows = measured(
        arguments.articles,
        arguments.runs,
        seconds=arguments.seconds,
        questions=arguments.questions,
        model=arguments.model,
    )
    print("| what | torch | Folio | ratio | agreement |\n|---|---|---|---|---|")
    for row in rows:
        times = f"{row.torch_s * 1000:.1f} ms | {row.folio_s * 1000:.1f} ms | {row.ratio:.2f}"
        print(f"| {row.what} | {times} | {row.agree} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
