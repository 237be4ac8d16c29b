"""The built-in reader: its numbers are those of the trained weights, and what it reads is what it was trained on."""

from __future__ import annotations

import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from folio.errors import ModelError, ModelMissing
from folio.models.minilm import CLS, SEP, Ids, OnnxEncoder, load_tokenizer, token_ids
from folio.models.reader import FOLDER, HEADS, MOST_ABOVE, MOST_QUESTION, WINDOW, Reader
from folio.papers.model import Passage, Vectors

QUESTION = "How long do sea otters live?"
PASSAGES = [
    Passage(
        "On Sea Otters · Life",
        "In the wild a sea otter lives for ten to fifteen years; females live longer than males.",
    ),
    Passage("On Sea Otters · Food", "Sea otters eat urchins, clams and crabs, a quarter of their weight every day."),
    Passage("The Aletsch Glacier", "The glacier is 23 kilometres long and loses 50 metres a year."),
]


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


@pytest.mark.parametrize(
    ("question", "right"),
    [
        (QUESTION, 0),
        ("how old can a sea otter get", 0),
        ("What does a sea otter feed on?", 1),
        ("How long is the glacier?", 2),
    ],
)
def test_the_passage_that_answers_has_the_best_odds(reader: Reader, question: str, right: int) -> None:
    odds = [reading.answers for reading in reader.read(question, PASSAGES)]
    assert odds[right] == max(odds) > 0
    assert min(odds) < 0


def test_the_odds_of_a_passage_depend_on_that_passage_alone(reader: Reader) -> None:
    together = reader.read(QUESTION, PASSAGES)
    assert [reader.read(QUESTION, [passage])[0] for passage in PASSAGES] == together
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: reader.read(QUESTION, PASSAGES), range(8))) == [together] * 8
    assert Reader(threads=1).read(QUESTION, PASSAGES) == together
    assert reader.read(QUESTION, []) == []


def test_the_answering_sentence_has_the_best_odds(reader: Reader) -> None:
    others = ["The glacier is long.", "Its ice is thick in winter.", "Urchins eat the kelp of the coast."] * 30
    for place in (0, 31, 88):
        said = [*others[:place], "In the wild a sea otter lives for ten to fifteen years.", *others[place:]]
        starts = [sum(len(sentence) + 1 for sentence in said[:at]) for at in range(len(said))]
        spans = tuple((start, start + len(sentence)) for start, sentence in zip(starts, said, strict=True))
        (reading,) = reader.read(QUESTION, [Passage("On Sea Otters", " ".join(said))])
        odds = [reading.sentence(*span) for span in spans]
        assert max(range(len(said)), key=odds.__getitem__) == place
    one_word = "kelp" * 500  # more tokens than are read at once
    (reading,) = reader.read(QUESTION, [Passage("", f"{one_word} Otters.")])
    assert all(math.isfinite(reading.sentence(*span)) for span in ((0, 2000), (2001, 2008)))
    assert reading.sentence(2001, 2001) == -math.inf


def test_a_passage_is_read_once_for_one_question(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    run = OnnxEncoder.run

    def counted(self: OnnxEncoder, ids: Ids, types: Ids | None = None) -> Vectors:
        runs.append(len(ids))
        return run(self, ids, types)

    monkeypatch.setattr(OnnxEncoder, "run", counted)
    first = reader.read("Where do otters sleep?", PASSAGES)
    assert reader.read("Where do otters sleep?", PASSAGES[::-1]) == first[::-1]
    assert len(runs) == len(PASSAGES)
    assert reader.read("Where do the otters sleep?", PASSAGES) != first
    assert len(runs) == 2 * len(PASSAGES)


def test_what_is_read_is_cut_as_in_training(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Ids, Ids]] = []
    run = OnnxEncoder.run

    def spied(self: OnnxEncoder, ids: Ids, types: Ids | None = None) -> Vectors:
        assert types is not None
        seen.append((ids, types))
        return run(self, ids, types)

    monkeypatch.setattr(OnnxEncoder, "run", spied)
    one = [token_ids(load_tokenizer(), word)[0][0] for word in ("question", "title", "text")]
    reader.read("question " * 99, [Passage("title " * 99, "text " * 250)])
    reader.read("question", [Passage("", "text \ud800")])
    (ids, types), (last, _), (short, short_types) = seen
    assert len(last) == WINDOW  # the last part of a text is as long as the others
    counts = (MOST_QUESTION, MOST_ABOVE, WINDOW - 4 - MOST_QUESTION - MOST_ABOVE)
    parts = [[word] * count for word, count in zip(one, counts, strict=True)]
    assert ids.tolist() == [CLS, *parts[0], SEP, *parts[1], SEP, *parts[2], SEP]
    assert types.tolist() == [0] * (MOST_QUESTION + 2) + [1] * (WINDOW - MOST_QUESTION - 2)
    assert short[:5].tolist() == [CLS, one[0], SEP, SEP, one[2]]  # a lone surrogate of a PDF is no error
    assert short_types[:4].tolist() == [0, 0, 0, 1]


def test_a_file_that_is_missing_or_changed_is_named(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "reader")
    np.save(folder / HEADS, np.zeros((2, 385), np.float32))
    with pytest.raises(ModelError, match=r"heads\.npy is not the file that Folio came with"):
        Reader(folder).read(QUESTION, PASSAGES)
    (folder / HEADS).unlink()
    with pytest.raises(ModelMissing, match=r"no file heads\.npy"):
        Reader(folder).read(QUESTION, PASSAGES)
