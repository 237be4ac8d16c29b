"""Papers, passages, evidence and answers made for tests."""

from __future__ import annotations

import textwrap
from collections.abc import Generator, Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from config import Settings
from folio.answer_types import Answer, Evidence, Sentence
from folio.grounding.sentences import citation
from folio.ingest import chunking
from folio.papers.metadata import simple_metadata
from folio.papers.model import Chunk, Hit, NewPaper, PageMap, Paper, SourceFile
from folio.question.question import Question
from folio.store import indexes
from folio.store.fingerprint import fingerprint
from folio.store.library import Library
from tests.helpers.fakes import HashingApp, HashingEmbedder
from tests.helpers.paths import models_folder
from tests.helpers.pdfs import save

YieldT = TypeVar("YieldT")
ReturnT = TypeVar("ReturnT")

OTTERS = (
    "Sea otters sleep on their backs and float in rafts of kelp. The fur of a sea otter has about 155,000 hairs on"
    " each square centimetre of skin. No other mammal has a denser fur.",
    "The diet of the sea otter is made of urchins, clams and crabs. An adult otter eats a quarter of its own weight"
    " each day. It opens the shells with a stone that it carries under its arm.",
)
GLACIERS = (
    "The Aletsch glacier is the largest glacier of the Alps. The Aletsch glacier has a length of 23 kilometres and"
    " covers 82 square kilometres of the Bernese Alps.",
    "At the Konkordiaplatz the ice of the Aletsch glacier has a thickness of 800 metres. The tongue of the glacier"
    " retreats by 40 metres each year, and the loss has become faster since 1980.",
    "Measurements of the melt water are taken at Blatten. The gauge stands in the river Massa and was built in 1922.",
)


def write_pdf(path: Path, pages: Iterable[str], title: str = "") -> Path:
    """A PDF with a paragraph of prose on each page, in lines of about 80 characters."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = [[(72.0, 90 + 13.0 * n, line) for n, line in enumerate(textwrap.wrap(text, 80))] for text in pages]
    return save(path, drawn, metadata={"title": title} if title else None)


@cache
def pdf_of(pages: tuple[str, ...] = OTTERS, title: str = "On Sea Otters") -> bytes:
    """The bytes of such a PDF: equal pages give equal bytes."""
    with TemporaryDirectory() as folder:
        return write_pdf(Path(folder) / "made.pdf", pages, title).read_bytes()


def small_papers(folder: Path) -> Path:
    """A folder with two papers of prose."""
    (folder / "alps").mkdir(parents=True, exist_ok=True)
    (folder / "otters.pdf").write_bytes(pdf_of())
    (folder / "alps" / "glaciers.pdf").write_bytes(pdf_of(GLACIERS, "The Aletsch Glacier"))
    return folder


def hits_on(*pages: str, file: str = "paper.pdf", title: str = "A Paper", size: int = 0) -> list[Hit]:
    """A paper of these pages as hits of `size` characters each, one for the whole paper when size is 0."""
    text = "\n\n".join(pages)
    starts, at = [], 0
    for page in pages:
        starts.append(at)
        at += len(page) + 2
    paper = Paper(file, file, simple_metadata(title), PageMap(tuple(starts), ("",) * len(pages)), len(text), 1)
    size = size or len(text)
    return [
        Hit(Chunk(start + 1, file, start, min(start + size, len(text))), paper, text[start : start + size], 0.5)
        for start in range(0, len(text), size)
    ]


def hit_on(*pages: str, file: str = "paper.pdf") -> Hit:
    """A paper of these pages as one hit."""
    return hits_on(*pages, file=file)[0]


def one_page_hits(*texts: str) -> list[Hit]:
    """One hit for each text, each of its own paper."""
    return [hit_on(text, file=f"paper{number}.pdf") for number, text in enumerate(texts, 1)]


def evidence_of(hits: Sequence[Hit]) -> list[Evidence]:
    """Each hit as a piece of evidence of its own, in the order given."""
    return [
        Evidence(number, hit.paper, hit.chunk.start, hit.chunk.end, hit.text, (hit,))
        for number, hit in enumerate(hits, 1)
    ]


def evidence_on(*texts: str) -> list[Evidence]:
    """A piece of evidence for each text, each of a paper of its own, of one page: paper1.pdf, paper2.pdf, ..."""
    return evidence_of(one_page_hits(*texts))


def answer_of(question: str, *sentences: str, standalone: str = "", title: str = "A Paper") -> Answer:
    """An answer of these sentences, each quoted from a paper that consists of them; a refusal without any."""
    if not sentences:
        return Answer(question, standalone or question, ())
    (evidence,) = evidence_of(hits_on(" ".join(sentences), title=title))
    spans = [(evidence.text.index(sentence), len(sentence)) for sentence in sentences]
    said = [
        Sentence(sentence, (citation(evidence, start, start + length, 1.0),))
        for sentence, (start, length) in zip(sentences, spans, strict=True)
    ]
    return Answer(question, standalone or question, tuple(said), (evidence,))


def to_the_end(run: Generator[YieldT, None, ReturnT]) -> tuple[list[YieldT], ReturnT]:
    """All that a generator yields, and what it returns."""
    found: list[YieldT] = []
    while True:
        try:
            found.append(next(run))
        except StopIteration as stopped:
            return found, stopped.value


def shelf(folder: Path, **chosen: str) -> HashingApp:
    """The tool over an index of the two papers, embedded by hashing; settings by name."""
    embedder = HashingEmbedder(256)
    settings = Settings(
        _env_file=None,  # type: ignore[call-arg]
        VECTORSTORE_DIR=folder / "vectorstore",
        CACHE_DIR=folder / "cache",
        MODELS_DIR=models_folder(),
        CHUNK_SIZE=300,
        CHUNK_OVERLAP=50,
        **{"RERANKER": "builtin", "LLM": "builtin", **chosen},  # type: ignore[arg-type]
    )
    app = HashingApp(settings, lambda text: None, embedder)
    library = Library(app.library_path, create=True)
    library.set_fingerprint(fingerprint(embedder, app.reading))
    for name, title, pages in (("otters.pdf", "On Sea Otters", OTTERS), ("glaciers.pdf", "Ice of the Alps", GLACIERS)):
        (hit,) = hits_on(*pages, file=name)
        spans = chunking.split(hit.text, app.reading.chunk_size, app.reading.chunk_overlap)
        paper = NewPaper(name, simple_metadata(title), hit.text, hit.paper.pages, spans)
        ids = [chunking.chunk_id(name, start, end) for start, end in spans]
        vectors = embedder.embed_passages([hit.text[start:end] for start, end in spans])
        library.add(paper, SourceFile(str(folder / name), name, name), ids, vectors)
    indexes.update_indexes(app.settings.VECTORSTORE_DIR, library, "tantivy")
    library.close()
    return app


def even_weights(question: Question | str) -> dict[str, float]:
    """Each word of a question tells as much as the others."""
    return dict.fromkeys(Question.of(question).tokens, 1.0)
