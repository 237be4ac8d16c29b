"""Make papers/folio-sample.pdf, the paper that Folio ships with: five pages on how Folio itself works.

    python scripts/make_sample.py
    python scripts/make_sample.py somewhere/else.pdf

The same bytes come out on every run, so a new file in a commit means that its text has changed.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pymupdf

OUTPUT: Final = Path(__file__).resolve().parent.parent / "papers" / "folio-sample.pdf"
TITLE: Final = "How Folio Answers: Page-True Evidence from a Folder of Papers"
AUTHORS: Final = "The Folio Authors"
DATE: Final = "D:20260901000000Z"

PAPER: Final = pymupdf.paper_rect("a4")  # 595 x 842 points
LEFT, RIGHT, TOP, BOTTOM = 82.0, 513.0, 84.0, 762.0
GUTTER: Final = 22.0

CSS: Final = """
* { font-family: Times; }
body { font-size: 11.2pt; line-height: 1.42; margin: 0; }
p { margin: 0 0 7pt 0; text-align: justify; }
h1 { font-size: 19pt; line-height: 1.2; text-align: center; margin: 6pt 0 9pt 0; }
h2 { font-size: 13.4pt; margin: 12pt 0 5pt 0; }
h3 { font-size: 11.4pt; margin: 9pt 0 3pt 0; }
code { font-family: Courier; font-size: 9.8pt; }
.byline { text-align: center; margin: 0 0 14pt 0; }
.abstract { margin: 0 28pt 6pt 28pt; font-size: 10.4pt; }
.narrow { text-align: left; font-size: 10.6pt; margin: 0 0 6.5pt 0; }
.formula { text-align: center; margin: 4pt 0 9pt 0; }
.caption { font-size: 9.6pt; text-align: center; margin: 10pt 0 5pt 0; }
.reference { font-size: 8.6pt; line-height: 1.25; text-align: left; margin: 0 0 2.5pt 0; }
.head { font-size: 8.8pt; font-style: italic; }
.right { text-align: right; }
.foot { font-size: 9pt; text-align: center; }
table { width: 100%; border-collapse: collapse; }
th, td { font-size: 9.6pt; text-align: left; padding: 3pt 5pt; border-bottom: 0.5pt solid #888; }
"""

PAGE_1: Final = """
<h1>How Folio Answers: Page-True Evidence<br>from a Folder of Papers</h1>
<p class="byline">The Folio Authors<br>2026</p>
<p class="abstract"><b>Abstract.</b> Folio answers questions about a folder of PDF papers on one computer, without a
network, and cites the page for every sentence that it prints. This paper describes how: how a file becomes clean text
that still knows its pages, how an index is kept so that it survives being stopped at any moment, how dense and lexical
search are joined and reranked, and how an answer is held to its evidence. The central idea is small. A passage is kept
as a span of its paper's text and not as a string with a label, so that the page of whatever is found in it is computed,
and is never guessed or written by a language model.</p>

<h2>1 Introduction</h2>
<p>Someone who asks a question of a shelf of papers wants two things: an answer, and the place where it stands. The
second is worth more than the first. An answer without its page has to be believed, and an answer with its page can be
checked in seconds. Many systems lose the page on the way. They cut a paper into strings, tie a page number to each
string as a label, and let a language model copy that label into its reply. At each of these steps the label can drift
away from the text that it was meant to describe.</p>
<p>Folio is built so that this cannot happen. Data flows one way. A PDF becomes pages, pages become chunks, and chunks
become vectors in a library. A question becomes hits, hits become evidence, and evidence becomes an answer. The offset
at which each page begins travels with the text through all of these stages.</p>

<h3>1.1 Two commands</h3>
<p>A reader drops PDF files into the folder <code>papers</code> and runs <code>python ingest.py</code>, which reads them
and brings the index up to date. Run again when nothing has changed, it does nothing and says so. Then <code>python
query.py</code>, followed by a question in quotation marks, prints an answer and its sources. Without a question, the
same command opens a chat that understands follow-up questions.</p>

<h3>1.2 Nothing leaves the computer</h3>
<p>Papers, questions and answers stay on the computer that they are on. Folio contacts the one Ollama server that it is
set up with, by default a server on the same machine, and nothing else. Models are downloaded only when the user asks
for that by name, with <code>make models</code>. A cloud model, which a local server would hand on to someone else's
computer, is refused. Folio also works with no server and no download at all, because small models for each job are
built in. Table 1 lists them.</p>
"""

PAGE_2: Final = """
<h2>2 Reading a paper</h2>
<h3>2.1 New, unchanged, changed or duplicate</h3>
<p>Before a file is opened, its SHA-256 hash is computed, and the hash decides what is done. A file whose hash is not in
the library is new, and is read. A file whose name and hash are both known is unchanged, and is skipped. A known name
with another hash is a changed paper, and the new version replaces the old one. A known hash under a second name is a
duplicate, and remains one paper. When all files have been seen, a list of what is in the index is written to
<code>ingested.json</code> for people to read.</p>

<h3>2.2 Page by page</h3>
<p>PyMuPDF reads the file page by page, so that one bad page never costs the others, and two-column pages are read in
reading order. Citations use physical page numbers, which begin at 1. The label printed on a page, such as iv or 127, is
kept beside them. Title, authors and year are taken from the metadata of the file or from its first page. Parsing runs
in worker processes, with a limit of 120 seconds a file and, on Linux, of 2048 megabytes of memory. A hostile PDF can
cost its own worker and nothing else.</p>

<h3>2.3 Cleaning</h3>
<p>Three kinds of damage are repaired. A ligature, one glyph that stands for two or three letters, is spelled out. A
word that was broken by a hyphen at the end of a line is joined again. Running heads and page numbers that repeat on
most pages are removed, since they would otherwise stand in the middle of a sentence that runs over a page break.</p>

<h2>3 A chunk is a span</h2>
<p>The cleaned pages of a paper are joined into one text, and the offset at which each page begins is kept beside it.
LangChain's <code>RecursiveCharacterTextSplitter</code> then splits the text as a whole. A chunk has at most 1500
characters and shares up to 200 of them with its neighbour, so that a sentence at the seam stands whole in one of the
two. The splitter cuts between paragraphs where it can, otherwise between lines, then sentences, then words.</p>
<p>A chunk is three values: a paper, a start and an end. Four things follow without further code. Its text is a slice of
the paper's text, so overlap costs no storage. Its pages are found by bisecting the list of page offsets with its first
and its last character. Widening it to its neighbours is moving two numbers. And a quote found inside it has an exact
page. A chunk that runs over a page break has two pages and names both; no chunk ever claims a page that its text is not
on.</p>
"""

PAGE_3: Final = """
<h2>4 Embedding</h2>
<p>Each chunk becomes a vector of unit length. Where an Ollama server answers and has the model, the vectors come from
<code>nomic-embed-text</code> (Nussbaum et al., 2024) and have 768 numbers each. Passages are sent in batches of 32 and
never all at once. This model was trained with task prefixes, so a passage is sent with <code>search_document:</code>
before it and a question with <code>search_query:</code>. Without a server, the built-in <code>all-MiniLM-L6-v2</code>
(Wang et al., 2020) takes its place. Its vectors have 384 numbers, its weights arrive as an ordinary Python package, and
they are used only if their SHA-256 is the one that their publisher lists.</p>
<p>Vectors of two different models cannot be compared. The store therefore carries a fingerprint of what it was made
with: the embedder, its dimension and prefixes, the chunk sizes, and the versions of cleaner and parser. Asked with
another fingerprint, it refuses, says which field differs, and names the command that rebuilds it.</p>

<h2>5 The store</h2>
<h3>5.1 One truth, two derived indexes</h3>
<p>One SQLite file, <code>library.sqlite</code> in the folder <code>vectorstore</code>, is the only truth. It holds the
papers, their text, the page offsets, the chunks, and the vector of each chunk. The FAISS file for dense search (Johnson
et al., 2021) and the BM25 index for lexical search are derived from it, and either can be deleted without loss.</p>

<h3>5.2 Generations</h3>
<p>Every change to the library raises its generation number, and each derived index is stamped with the generation that
it was made from. When the store is opened the stamps are compared. An index that lags behind, is missing or is damaged
is caught up from the library. The vectors are in the library already, so nothing is embedded a second time. A derived
file is written beside the old one, flushed to the disk, and renamed into place.</p>

<h3>5.3 When the power fails</h3>
<p>A paper lands in the library in one transaction, whole or not at all. A crash, a kill signal or a power failure costs
at most the paper in flight, and the next ingest takes that paper up again. Only one ingest can write at a time, which a
file lock makes sure of, and a question asked meanwhile sees one whole generation. Nothing in the store is a pickle, a
format that can run code when it is read.</p>

<h3>5.4 Care of the store</h3>
<p>Four options of <code>ingest.py</code> look after the store. With <code>--verify</code> it is checked against itself.
With <code>--repair</code> the derived indexes are made again. With <code>--prune</code> the papers whose file is gone
are dropped. With <code>--rebuild</code> everything starts over from the PDF files.</p>
"""

PAGE_4: Final = """
<h2>6 Finding the evidence</h2>
<h3>6.1 Two searches</h3>
<p>A question is searched for in two ways, and each search names its best 20 passages. Dense search compares vectors,
and finds passages that say the same thing in other words. BM25 (Robertson and Zaragoza, 2009) compares words, counts
the rare ones for more, and finds names, numbers and terms that an embedding blurs. For BM25, a technical compound such
as ML-KEM.KeyGen, SHAKE128 or top-k is indexed whole and in its parts. Words are reduced to their stems, and stop words
are dropped. The engine is tantivy, which opens in about a millisecond.</p>

<h3>6.2 Fusion</h3>
<p>Cosines and BM25 scores are not on one scale. The scores of each list are therefore divided by the largest score in
that list, so that they lie between 0 and 1. The two lists are then merged by chunk, with 70 percent for dense search
and 30 percent for BM25:</p>
<p class="formula"><i>score</i> = 0.7 &#215; <i>dense</i> + 0.3 &#215; <i>BM25</i></p>
<p>For a passage that BM25 alone found, the cosine is computed as well; one that dense search alone found gets 0 from
BM25. A passage with a scaled dense score of 0.9 and a scaled
BM25 score of 0.5, for example, has a fused score of 0.63 + 0.15 = 0.78.</p>

<h3>6.3 Reranking</h3>
<p>The best 20 of the merged list are read once more, this time together with the question, by the cross-encoder
<code>cross-encoder/ms-marco-MiniLM-L-6-v2</code> (Nogueira and Cho, 2019). Reading the two together is slower than
comparing vectors and more exact, which is why it is done for 20 passages and not for all. The best 4 are kept as
evidence. When the files of the cross-encoder are not on the computer, nothing waits for a network. A reranker that
needs no further weights takes over, and the output says so.</p>

<h3>6.4 Passages without an answer</h3>
<p>With <code>--sources</code>, <code>query.py</code> prints the ranked passages and calls no language model. The option
<code>--paper</code> keeps both searches inside one paper, and <code>--top-k</code> sets how many passages are kept.</p>

<p class="caption"><b>Table 1.</b> Which model does which job. A choice made by name never falls back to another.</p>
<table>
<tr><th>Job</th><th>With Ollama or after make models</th><th>Built in</th></tr>
<tr><td>Embed</td><td>nomic-embed-text, 768 numbers</td><td>all-MiniLM-L6-v2, 384 numbers</td></tr>
<tr><td>Rerank</td><td>ms-marco-MiniLM-L-6-v2</td><td>a reranker without weights of its own</td></tr>
<tr><td>Answer</td><td>llama3.1:8b, temperature 0</td><td>extractive: sentences of the evidence</td></tr>
</table>
"""

PAGE_5_LEFT: Final = """
<h2>7 Answering</h2>
<p class="narrow">The chain is LangChain's ConversationalRetrievalChain. With Ollama, the model llama3.1:8b writes the
answer at temperature 0. Its context window is sized to the prompt, so that nothing is cut in silence. A follow-up
question is first rewritten into one that stands alone. The rewritten question is used for searching and is never shown
as part of the answer.</p>
<p class="narrow">Without Ollama, the same chain ends in an extractive answerer. It chooses the sentences of the
evidence that answer the question best, and quotes them.</p>

<h2>8 Citing</h2>
<p class="narrow">An answer is a list of sentences, each with at least one citation. A citation is a paper, a page and a
quote that stands word for word in the text of that page. The program finds the quote; the model never writes it. A
sentence that no evidence supports is withheld.</p>
<p class="narrow">When nothing supports an answer, the reply is one fixed sentence without citations: "Not found in the
provided papers." A refusal is better than an answer that nobody can check.</p>
<p class="narrow">An answer can be taken further by a program. With <code>--json</code>, nothing but one object a
question is printed: the answer, its citations with file, page and quote, and the passages in the order of their
rank.</p>
"""

PAGE_5_RIGHT: Final = """
<h2>9 Limits and failures</h2>
<p class="narrow"><b>Scanned papers.</b> A scanned PDF is a row of pictures without a text layer. Folio reads such pages
where Tesseract or RapidOCR is installed, and its report names them. A file that gives no text is never counted as a
success.</p>
<p class="narrow"><b>Broken files.</b> A file that is encrypted, truncated, empty or no PDF at all is listed with its
reason, and the others are read all the same. A file of more than 500 megabytes is not opened.</p>
<p class="narrow"><b>Figures and tables.</b> Figures are not read. Tables and formulas lose their layout when they
become text, and a number taken out of a table deserves a look at its page.</p>
<p class="narrow"><b>What a citation shows.</b> That the quote stands on the page, not that the page is right.</p>
<p class="narrow"><b>Extraction.</b> The extractive answerer quotes. It does not calculate, compare or summarise.</p>

<h2>References</h2>
<p class="reference">J. Johnson, M. Douze, H. J&#233;gou. Billion-scale similarity search with GPUs. <i>IEEE
Transactions on Big Data</i>, 2021.</p>
<p class="reference">R. Nogueira, K. Cho. Passage re-ranking with BERT. arXiv:1901.04085, 2019.</p>
<p class="reference">Z. Nussbaum, J. X. Morris, B. Duderstadt, A. Mulyar. Nomic Embed: training a reproducible long
context text embedder. arXiv:2402.01613, 2024.</p>
<p class="reference">S. Robertson, H. Zaragoza. The probabilistic relevance framework: BM25 and beyond. <i>Foundations
and Trends in Information Retrieval</i>, 2009.</p>
<p class="reference">W. Wang et al. MiniLM: deep self-attention distillation for task-agnostic compression of
pre-trained transformers. arXiv:2002.10957, 2020.</p>
"""

# The texts of each page from left to right: the last one has two columns.
PAGES: Final = ((PAGE_1,), (PAGE_2,), (PAGE_3,), (PAGE_4,), (PAGE_5_LEFT, PAGE_5_RIGHT))
OUTLINE: Final = [
    [1, "1 Introduction", 1],
    [1, "2 Reading a paper", 2],
    [1, "3 A chunk is a span", 2],
    [1, "4 Embedding", 3],
    [1, "5 The store", 3],
    [1, "6 Finding the evidence", 4],
    [1, "7 Answering", 5],
    [1, "8 Citing", 5],
    [1, "9 Limits and failures", 5],
]


def columns(count: int) -> list[pymupdf.Rect]:
    """The boxes, from left to right, of a page with this many columns."""
    width = (RIGHT - LEFT - GUTTER * (count - 1)) / count
    lefts = [LEFT + index * (width + GUTTER) for index in range(count)]
    return [pymupdf.Rect(left, TOP, left + width, BOTTOM) for left in lefts]


def place(device: pymupdf.DeviceWrapper, html: str, box: pymupdf.Rect) -> None:
    """Draw the text into the box. Raises ValueError where it does not fit."""
    story = pymupdf.Story(html, CSS)
    more, _ = story.place(box)
    if more:
        raise ValueError(f"This text is too long for its page: {html.strip()[:60]}...")
    story.draw(device)


def typeset() -> bytes:
    """The pages with their running heads and page numbers, without metadata."""
    buffer = io.BytesIO()
    writer = pymupdf.DocumentWriter(buffer)
    for number, texts in enumerate(PAGES, start=1):
        device = writer.begin_page(PAPER)
        if number > 1:
            head = pymupdf.Rect(LEFT, 50, RIGHT, 70)
            place(device, '<p class="head">How Folio Answers</p>', head)
            place(device, f'<p class="head right">{AUTHORS}, 2026</p>', head)
        for text, box in zip(texts, columns(len(texts)), strict=True):
            place(device, text, box)
        place(device, f'<p class="foot">{number}</p>', pymupdf.Rect(LEFT, 782, RIGHT, 802))
        writer.end_page()
    writer.close()
    return buffer.getvalue()


def make_sample() -> bytes:
    """The sample paper as the bytes of a PDF, the same on every run."""
    with pymupdf.open("pdf", typeset()) as document:
        document.set_metadata(
            {
                "title": TITLE,
                "author": AUTHORS,
                "subject": "How a question about a folder of papers gets an answer with pages",
                "keywords": "question answering, citations, hybrid retrieval, offline",
                "creator": "scripts/make_sample.py",
                "producer": "PyMuPDF",
                "creationDate": DATE,
                "modDate": DATE,
            }
        )
        document.set_page_labels([{"startpage": 0, "prefix": "", "style": "D", "firstpagenum": 1}])
        document.set_toc(OUTLINE)
        document.subset_fonts()
        # A new /ID would be random, and differ on every run.
        data: bytes = document.tobytes(garbage=4, deflate=True, no_new_id=True, reproducible=True)
        return data


def main(argv: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    output = Path(arguments[0]) if arguments else OUTPUT
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(make_sample())
    print(f"Wrote {output} ({len(PAGES)} pages, {output.stat().st_size // 1024} kB).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
