"""Train the built-in reader: a question and a passage read together -> does the passage answer?

    python scripts/train_reader.py data/ --library vectorstore/library.sqlite

It starts from all-MiniLM-L6-v2 and takes about an hour and a half on two cores; folio/models/reader.py names the
digests of the files. data/ has covidqa/, evidence/, qa/, qasper/ and textqrels/scifact/; the library is an index of
data/papers and data/mixed together. Training data and their licences: reader_questions.jsonl (5,466 questions that a
language model wrote for Folio, on passages of every second of these papers and of COVID-QA, of trial reports and of
SciFact's abstracts), SQuAD 2.0's development half (CC BY-SA 4.0), PolicyQA (MIT), SelQA (Apache 2.0), Evidence
Inference's training half (MIT), and of QASPER (CC BY-SA 4.0) and COVID-QA (Apache 2.0) every second paper.

Loss: softmax over a question's passages, cross-entropy of each passage and of each sentence, and softmax over the
sentences of a passage that answers. The word embeddings and the lowest two layers stay as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rank_bm25 import BM25Okapi
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertModel

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.models.bert_onnx import build_graph
from folio.models.minilm import CLS, SEP, load_tokenizer, token_ids
from folio.models.reader import FOLDER, GRAPH, HEADS, MOST_ABOVE, MOST_QUESTION, POSITIONS, TYPES, WINDOW
from folio.store.library import Library
from folio.text import sentence_spans, tokenize
from scripts.make_minilm import SIZES, npy, publishers_folder

QUESTIONS = Path(__file__).with_name("reader_questions.jsonl")
PASSAGE = 1000  # characters of a passage that a document is cut into, about
FROZEN_LAYERS, LEARNING_RATE, WARM_UP, PAIRS, SEED = 2, 1e-4, 60, 18, 3
# How much the parts of the loss count beside the softmax over passages, and sentences of passages that do not answer.
REST, OF_OTHERS = 0.7, 0.35

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Text:
    """A passage as it is read, and the places of its sentences that answer."""

    head: str
    text: str
    sentences: tuple[Span, ...]
    answers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """A question, the passage that answers it, if there is one, and others that do not."""

    question: str
    answer: Text | None
    others: tuple[Text, ...]

    @property
    def pairs(self) -> list[tuple[str, Text, bool]]:
        right = [(self.question, self.answer, True)] if self.answer else []
        return [*right, *((self.question, other, False) for other in self.others)]


# The data


def cut(text: str) -> Iterator[Span]:
    """Runs of sentences of about PASSAGE characters."""
    begin = last = -1
    for start, end in sentence_spans(text):
        if begin >= 0 and end - begin > PASSAGE:
            yield begin, last
            begin = -1
        begin, last = (start if begin < 0 else begin), end
    if begin >= 0:
        yield begin, last


def marked(head: str, text: str, answers: Sequence[Span]) -> Text:
    sentences = tuple(sentence_spans(text))
    right = (at for at, (a, b) in enumerate(sentences) if any(a < end and start < b for start, end in answers))
    return Text(head, text, sentences, tuple(right))


def of_document(head: str, text: str, asked: Sequence[tuple[str, Span]]) -> Iterator[Group]:
    """Questions on a document: the passage with the answer, and three that BM25 puts near it."""
    spans = list(cut(text))
    ranking = BM25Okapi([tokenize(text[a:b]) or ["_"] for a, b in spans])
    for question, (start, end) in asked:
        scores = ranking.get_scores(tokenize(question))
        right: list[Text] = []
        wrong: list[Text] = []
        for at in sorted(range(len(spans)), key=lambda at: -scores[at]):
            a, b = spans[at]
            is_right = a < end and start < b
            (right if is_right else wrong).append(marked(head, text[a:b], [(start - a, end - a)] if is_right else []))
        if right and right[0].answers:
            yield Group(question, right[0], tuple(random.sample(wrong[:6], min(3, len(wrong)))))


def of_articles(path: Path, most: int, *, titled: bool) -> Iterator[Group]:
    """SQuAD's layout: the paragraph, and two of its article near the question; unanswerable ones have no answer."""
    asked = []
    for article in _json(path)["data"]:
        texts = [paragraph["context"] for paragraph in article["paragraphs"]]
        ranking = BM25Okapi([tokenize(text) or ["_"] for text in texts])
        head = article["title"].replace("_", " ") if titled else ""
        for at, paragraph in enumerate(article["paragraphs"]):
            asked += [(head, texts, ranking, at, entry) for entry in paragraph["qas"]]
    random.shuffle(asked)
    for head, texts, ranking, at, entry in asked[:most]:
        spans = [(each["answer_start"], each["answer_start"] + len(each["text"])) for each in entry["answers"]]
        own = marked(head, texts[at], spans)
        scores = ranking.get_scores(tokenize(entry["question"]))
        near = [other for other in np.argsort(-scores) if texts[other] != texts[at]][:4]
        others = tuple(marked(head, texts[other][:1200], []) for other in random.sample(near, min(2, len(near))))
        if own.answers:
            yield Group(entry["question"], own, others)
        elif not spans:
            yield Group(entry["question"], None, (own, *others[:1]))


def of_selqa(path: Path) -> Iterator[Group]:
    for entry in _json(path):
        text, sentences = "", list[Span]()
        for candidate in entry["candidates"]:
            if len(text) + len(candidate) > 1300:
                break
            sentences.append((len(text), len(text) + len(candidate)))
            text += f"{candidate} "
        answers = tuple(at for at in entry["answers"] if at < len(sentences))
        if answers:
            yield Group(entry["question"], Text(entry["article"], text, tuple(sentences), answers), ())


def of_qasper(path: Path) -> Iterator[Group]:
    """Of every second paper: a paragraph with marked sentences, and three that are not marked for the question."""
    pools = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    chosen = set(sorted({pool["paper"] for pool in pools})[::2])
    for pool in pools:
        texts = [text[:1500] for text in pool["paragraphs"]]
        for entry in pool["questions"] if pool["paper"] in chosen else ():
            said = [sentence.strip() for sentence in entry["sentences"] if sentence.strip()]
            spans = [
                [(texts[at].find(each), texts[at].find(each) + len(each)) for each in said if each in texts[at]]
                for at in entry["paragraphs"]
            ]
            right = [marked("", texts[at], own) for at, own in zip(entry["paragraphs"], spans, strict=True) if own]
            wrong = [marked("", text, []) for at, text in enumerate(texts) if at not in entry["paragraphs"]]
            others = tuple(random.sample(wrong, min(3, len(wrong))))
            if right or others:
                yield Group(entry["question"], right[0] if right else None, others)


def of_ours(data: Path, library: Path) -> Iterator[Group]:
    """Our own questions: the passage, two others of its paper near the question, and one of another paper."""
    entries = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    names = list(dict.fromkeys(entry["passage"] for entry in entries))
    passages = dict(zip(names, _passages(names, data, library), strict=True))
    ranking = BM25Okapi([tokenize(f"{passages[name].head} {passages[name].text}") or ["_"] for name in names])
    for entry in entries:
        name, own = entry["passage"], passages[entry["passage"]]
        answers = tuple(at - 1 for at in entry["sentences"] if at <= len(own.sentences))
        said = [own.text[slice(*own.sentences[at])] for at in answers]
        scores = ranking.get_scores(tokenize(entry["question"]))
        near = [names[at] for at in np.argsort(-scores)[:14] if names[at] != name]
        near = [other for other in near if not any(each in passages[other].text for each in said)]
        paper = name.rsplit(":", 2)[0]
        same = [other for other in near if other.rsplit(":", 2)[0] == paper][:4]
        apart = [other for other in near if other not in same][:5]
        chosen = [*random.sample(same, min(2, len(same))), *random.sample(apart, min(1 if same else 3, len(apart)))]
        others = tuple(passages[other] for other in (chosen if answers else near[:1]))
        if answers:
            yield Group(entry["question"], replace(own, answers=answers), others)
        else:
            yield Group(entry["question"], None, (own, *others))


def _passages(names: Sequence[str], data: Path, library: Path) -> Iterator[Text]:
    """By name: L (of the library), C (COVID-QA), E (a trial report) or S (SciFact), the document, and the span."""
    covid = {str(each["document"]): each["text"] for each in _json(data / "covidqa/dev.json")}
    trials = {each["title"]: each["paragraphs"][0]["context"] for each in _json(data / "evidence/train.json")["data"]}
    lines = (data / "textqrels/scifact/corpus.jsonl").read_text(encoding="utf-8").splitlines()
    abstracts = {each["_id"]: each for each in map(json.loads, lines)}
    opened = Library(library)
    try:
        papers = {paper.id[:12]: paper for paper in opened.papers()}
        for name in names:
            kind, id, start, end = name.split(":")
            a, b = int(start), int(end)
            if kind == "L":
                paper = papers[id]
                around = [section for section in paper.sections.sections if section.start <= a < section.end]
                head = " · ".join(filter(None, (paper.title, around[-1].title if around else "")))
                text = opened.text(paper.id, a, b)
            elif kind == "S":
                head, text = f"{abstracts[id]['title']} · abstract", abstracts[id]["text"][:1500]
            else:
                whole = covid[id] if kind == "C" else trials[id]
                title = re.match(r"(?:TITLE:\s*)?(.*)", whole)
                head, text = title[1] if title else "", whole[a:b]
            yield marked(head, text, [])
    finally:
        opened.close()


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def groups(data: Path, library: Path) -> tuple[list[Group], list[Group]]:
    """What is learned first, and then, with our own questions."""
    first: list[Group] = []
    for report in _json(data / "evidence/train.json")["data"]:
        text = report["paragraphs"][0]["context"]
        title = re.match(r"TITLE:\s*(.*)", text)
        asked = [
            (entry["question"], (span["answer_start"], span["answer_start"] + len(span["text"])))
            for entry in report["paragraphs"][0]["qas"]
            for span in entry["answers"][:1]
        ]
        first += of_document(title[1] if title else "", text, asked)
    articles = sorted(_json(data / "covidqa/dev.json"), key=lambda each: int(each["document"]))[::2]
    for each in articles:
        asked = [(q["question"], (q["start"], q["start"] + len(q["answer"]))) for q in each["questions"]]
        first += of_document(each["text"].partition("\n")[0], each["text"], asked)
    first += of_qasper(data / "qasper/dev.jsonl")
    squad = list(of_articles(data / "qa/squad2-dev.json", 3600, titled=True))
    policy = list(of_articles(data / "qa/policyqa-dev.json", 900, titled=False))
    selqa = list(of_selqa(data / "qa/selqa-dev.json"))
    then = [*first, *random.sample(squad, 500), *random.sample(selqa, 150), *of_ours(data, library)]
    return [*first, *squad, *policy, *selqa], then


# The model


class ReaderModel(nn.Module):  # type: ignore[misc]  # torch's types are not read
    """MiniLM with a head for the passage, on [CLS], and one for its sentences, on their mean states."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = BertModel.from_pretrained(
            publishers_folder(), add_pooling_layer=False, attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0
        )
        self.passage, self.sentence = nn.Linear(SIZES.dimension, 1), nn.Linear(SIZES.dimension, 1)
        for part in (self.bert.embeddings, *self.bert.encoder.layer[:FROZEN_LAYERS]):
            part.requires_grad_(False)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor, pool: Tensor) -> tuple[Tensor, Tensor]:
        """Log-odds of each passage, shape (pairs,), and of its sentences, shape (pairs, sentences)."""
        states = self.bert(input_ids=ids, token_type_ids=types, attention_mask=mask).last_hidden_state
        return self.passage(states[:, 0]).squeeze(-1), self.sentence(torch.bmm(pool, states)).squeeze(-1)


class Batches:
    """Pairs as tensors."""

    def __init__(self) -> None:
        self.tokenizer = load_tokenizer()
        self.known: dict[str, tuple[npt.NDArray[np.int32], list[Span]]] = {}

    def tokens(self, text: str) -> tuple[npt.NDArray[np.int32], list[Span]]:
        if text not in self.known:
            self.known[text] = token_ids(self.tokenizer, text)
        return self.known[text]

    def tensors(self, pairs: Sequence[tuple[str, Text, bool]]) -> tuple[Tensor, ...]:
        """ids, types, mask, pool (the mean over each sentence's tokens), and the sentences' labels, -1 for none."""
        rows = [self.row(question, text) for question, text, _ in pairs]
        length, most = max(len(ids) for ids, _, _ in rows), max(1, *(len(text.sentences) for _, text, _ in pairs))
        ids, types, mask = (torch.zeros(len(rows), length, dtype=torch.long) for _ in range(3))
        pool, labels = torch.zeros(len(rows), most, length), torch.full((len(rows), most), -1.0)
        for at, ((own, begin, ranges), (_, text, is_right)) in enumerate(zip(rows, pairs, strict=True)):
            ids[at, : len(own)] = torch.tensor(own)
            types[at, begin : len(own)] = 1
            mask[at, : len(own)] = 1
            for place, (first, last) in ranges.items():
                pool[at, place, first:last] = 1 / (last - first)
                labels[at, place] = float(is_right and place in text.answers)
        return ids, types, mask, pool, labels

    def row(self, question: str, text: Text) -> tuple[list[int], int, dict[int, Span]]:
        """Token ids, where the second part begins, and the tokens of each sentence that is read."""
        asked, above = self.tokens(question)[0][:MOST_QUESTION], self.tokens(text.head)[0][:MOST_ABOVE]
        ids, spans = self.tokens(text.text)
        room = WINDOW - 4 - len(asked) - len(above)
        begin = len(asked) + 2
        whole = [CLS, *asked.tolist(), SEP, *above.tolist(), SEP, *ids[:room].tolist(), SEP]
        shift = begin + len(above) + 1
        starts = np.array([start for start, _ in spans[:room]], dtype=np.int64)
        ranges = {at: tuple(np.searchsorted(starts, span).tolist()) for at, span in enumerate(text.sentences)}
        return whole, begin, {at: (a + shift, b + shift) for at, (a, b) in ranges.items() if a < b}


def loss_of(model: ReaderModel, batches: Batches, chosen: Sequence[Group]) -> Tensor:
    pairs = [pair for group in chosen for pair in group.pairs]
    *inputs, labels = batches.tensors(pairs)
    passages, sentences = model(*inputs)
    right = torch.tensor([float(is_right) for _, _, is_right in pairs])
    whole, at = [], 0
    for group in chosen:
        count = len(group.pairs)
        if group.answer and count > 1:
            whole.append(functional.cross_entropy(passages[at : at + count][None], torch.tensor([0])))
        at += count
    inside = []
    for row, label in zip(sentences, labels, strict=True):
        known = label >= 0
        if (label == 1).any() and known.sum() > 1:
            inside.append(-torch.logsumexp(functional.log_softmax(row[known], 0)[label[known] == 1], 0))
    known = labels >= 0
    each = functional.binary_cross_entropy_with_logits(
        sentences[known], labels[known], reduction="none", pos_weight=torch.tensor(2.0)
    )
    weighted = each * torch.where(right[:, None] > 0, 1.0, OF_OTHERS).expand_as(labels)[known]
    nothing = passages.sum() * 0
    rest = functional.binary_cross_entropy_with_logits(passages, right) + weighted.mean()
    rest = rest + (torch.stack(inside).mean() if inside else nothing)
    return (torch.stack(whole).mean() if whole else nothing) + REST * rest


def in_batches(chosen: list[Group]) -> list[list[Group]]:
    """About PAIRS pairs of like length in each."""
    random.shuffle(chosen)
    made: list[list[Group]] = []
    for begin in range(0, len(chosen), 400):
        part = sorted(chosen[begin : begin + 400], key=lambda group: max(len(text.text) for _, text, _ in group.pairs))
        made.append([])
        for group in part:
            if sum(len(each.pairs) for each in (*made[-1], group)) > PAIRS:
                made.append([])
            made[-1].append(group)
    made = [batch for batch in made if batch]
    random.shuffle(made)
    return made


def train(model: ReaderModel, batches: Batches, made: Sequence[list[Group]], rate: float) -> None:
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate, weight_decay=0.01)
    model.train()
    for step, chosen in enumerate(made):
        for settings in optimizer.param_groups:
            settings["lr"] = rate * min(1.0, (step + 1) / WARM_UP) * (1 - (step + 1) / (len(made) + 1))
        loss = loss_of(model, batches, chosen)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"{step} of {len(made)}: loss {loss.item():.3f}", flush=True)


def write(model: ReaderModel, folder: Path) -> None:
    state = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    tensors = {name.removeprefix("bert."): value for name, value in state.items() if name.startswith("bert.")}
    heads = [np.append(state[f"{head}.weight"], state[f"{head}.bias"]) for head in ("passage", "sentence")]
    files = {
        GRAPH: build_graph(tensors, SIZES, 1),
        POSITIONS: npy(tensors["embeddings.position_embeddings.weight"][:WINDOW]),
        TYPES: npy(tensors["embeddings.token_type_embeddings.weight"]),
        HEADS: npy(np.stack(heads)),
    }
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
        print(f'    "{name}": "{hashlib.sha256(content).hexdigest()}",  # {len(content):,} bytes')


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the built-in reader.")
    parser.add_argument("data", type=Path, help="the folder with the sets")
    parser.add_argument("--library", type=Path, required=True, help="library.sqlite of data/papers and data/mixed")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where its files are written, unless those of Folio")
    given = parser.parse_args()
    random.seed(SEED)
    torch.manual_seed(SEED)
    first, then = groups(given.data, given.library)
    model, batches = ReaderModel(), Batches()
    made = in_batches(first)
    train(model, batches, made[: len(made) // 3], LEARNING_RATE)
    train(model, batches, in_batches(then), LEARNING_RATE)
    write(model, given.out)


if __name__ == "__main__":
    main()
