"""Drafts are read: which sentences cite what, in Markdown, LaTeX and Word, and what is refused."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import docx
import pytest

from folio.drafts import latex, markdown
from folio.drafts.checking import read_draft
from folio.drafts.draft import Draft, sentences
from folio.errors import UsageError

pytestmark = pytest.mark.fast


def read(draft: Draft) -> list[tuple[int, str, list[str]]]:
    """Each sentence that cites something: its line, its words, what it cites."""
    return [(each.line, each.text, [str(cited) for cited in each.cited]) for each in sentences(draft)]


@pytest.mark.parametrize(
    ("text", "words", "cited"),
    [
        ("Otters sleep [@otter2021].", "Otters sleep.", ["@otter2021"]),  # too short: see below
        ("All otters float in kelp [see @otter2021, p. 3; -@seal20].", "All otters float in kelp.",
         ["@otter2021", "@seal20"]),
        ("@otter2021 shows that otters float.", "The paper shows that otters float.", ["@otter2021"]),
        ("All otters float in kelp (Otter et al., 2021; Seal & Kelp 1998a, p. 3).", "All otters float in kelp.",
         ["Otter et al., 2021", "Seal & Kelp 1998a"]),
        ("Otter and Seal (2021) say that otters float.", "Otter and Seal say that otters float.",
         ["Otter and Seal (2021)"]),
        ("All otters float in kelp [Otter & Seal 2021, p. 6].", "All otters float in kelp.", ["Otter & Seal 2021"]),
        ("All otters float in kelp [2, 4–6].", "All otters float in kelp.", ["[2]", "[4]", "[5]", "[6]"]),
        ("All otters float in kelp.[3] They dive.", "All otters float in kelp.", ["[3]"]),
        ("All *otters* float in [kelp](https://doi.org/10.1000/kelp.1).", "All otters float in kelp.",
         ["https://doi.org/10.1000/kelp.1"]),
        ("All otters float in kelp, arXiv:2301.01234v2.", "All otters float in kelp,.", ["arXiv:2301.01234v2"]),
    ],
)  # fmt: skip
def test_what_a_sentence_in_markdown_cites(text: str, words: str, cited: list[str]) -> None:
    found = read(markdown.read(f"# Title\n\n{text}\n"))
    assert found == ([] if len(words.split()) < 3 else [(3, words, cited)])


def test_what_is_no_sentence_of_a_draft_in_markdown() -> None:
    text = (
        "---\nbibliography: [a.bib, 'b.json']\nabstract: It floats [@front].\n---\n# On otters [@heading]\n\n"
        "```\nAll otters float in kelp [@code].\n```\n<!-- All otters float in kelp [@comment]. -->\n"
        "- The first item floats [@one].\n- The second item floats\n  in kelp [@two].\n\n"
        "Mail me at otter@example.org, or call (555) 2021.\n\n## References\n\n1. Otter, A. On otters [@list]. 2021.\n"
    )
    draft = markdown.read(text)
    assert [cited for _, _, cited in read(draft)] == [["@one"], ["@two"]]
    assert [line for line, _, _ in read(draft)] == [11, 13]
    assert [(entry.label, entry.text[:5]) for entry in draft.listed] == [("1", "Otter")]
    assert markdown.bib_files(text) == ["a.bib", "b.json"]


LATEX = r"""\documentclass{article}
\usepackage{natbib} % \cite{comment}
\newcommand{\otter}[1]{\emph{#1}}
\begin{document}
\section{Fur \cite{heading}}
All \otter{otters} float in 5\,\% of the kelp~\citep[see][p.~3]{otter2021,seal20}. \citet{seal20} shows
that they eat \SI{25}{\kilo\gram}\footnote{A day.} of urchins. 100\% of them dive \textcite*{dive}.
\begin{verbatim}
All otters float in kelp \cite{verbatim}.
\end{verbatim}
\begin{itemize} \item The first item floats \autocite{one}. \end{itemize}
\unknown{All seals} float in K\"oln \cite{two} too. \nocite{three}
\input{chapter2}
\bibliography{refs,more.bib}
\end{document}
All otters float in kelp \cite{after}.
"""


def test_what_the_sentences_in_latex_cite() -> None:
    draft = latex.read(LATEX)
    assert [(line, cited) for line, _, cited in read(draft)] == [
        (6, [r"\citep{otter2021}", r"\citep{seal20}"]), (6, [r"\citet{seal20}"]), (7, [r"\textcite{dive}"]),
        (11, [r"\autocite{one}"]), (12, [r"\cite{two}"]),
    ]  # fmt: skip
    words = [text for _, text, _ in read(draft)]
    assert words[0].startswith("All otters float in 5")
    assert words[0].endswith("of the kelp.")
    assert "25 kilogram" in words[1]
    assert words[4].startswith("All seals float in Köln too.")
    assert draft.problems == (r"\input{chapter2} is another file; check it by itself.",)
    assert latex.bib_files(LATEX) == ["refs.bib", "more.bib"]


def word(*paragraphs: str) -> bytes:
    document = docx.Document()
    for each in paragraphs:
        document.add_paragraph(each)
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def test_a_word_document_is_read_with_its_list_of_references(tmp_path: Path) -> None:
    path = tmp_path / "draft.docx"
    path.write_bytes(word("All otters float in kelp [1].", "References", "[1] Otter, A. On sea otters. 2021."))
    draft = read_draft(path)
    assert [cited for _, _, cited in read(draft)] == [["[1]"]]
    assert [entry.label for entry in draft.listed] == ["1"]


def bomb() -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * 40_000_000)
    return file.getvalue()


def broken() -> bytes:
    with zipfile.ZipFile(BytesIO(word("All otters float."))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["word/document.xml"] = b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;"
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "happened"),
    [
        ("draft.pdf", b"%PDF", "draft.pdf is no draft that Folio reads."),
        ("draft.docx", b"no archive", "draft.docx is not a Word document (.docx)."),
        ("draft.docx", b"PK\x03\x04" + b"\x00" * 60, "draft.docx is not a Word document (.docx)."),
        ("draft.docx", bomb(), "draft.docx would unpack to more than a document may have."),
        ("draft.docx", broken(), "draft.docx cannot be read as a Word document: "),
        ("draft.md", b"\x00\x01binary", "draft.md is not text."),
        ("draft.tex", b"a" * 5_000_001, "draft.tex has more than 5,000,000 characters."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_no_draft_is_refused(tmp_path: Path, name: str, content: bytes, happened: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_draft(path)
    assert refused.value.happened.startswith(happened)
    assert str(tmp_path) not in refused.value.happened


@pytest.mark.parametrize("path", ["missing.md", "."])
def test_a_draft_that_is_not_there_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(UsageError):
        read_draft(tmp_path / path)


def test_a_draft_in_an_old_encoding_is_read(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        path = tmp_path / "draft.md"
        path.write_bytes("Alle Otter schlafen im grünen Tang [@möwe].".encode(encoding))
        assert read(read_draft(path)) == [(1, "Alle Otter schlafen im grünen Tang.", ["@möwe"])]


@pytest.mark.parametrize(
    "hostile", ["[@" * 50_000, "\\cite{" * 50_000, "Otter, " * 50_000 + "2021", "(" * 100_000, "{" * 100_000]
)
def test_a_hostile_draft_is_read_in_time(hostile: str) -> None:
    assert read(markdown.read(hostile)) == []
    assert read(latex.read(hostile)) == []
