"""Reading BibTeX and BibLaTeX: what entries say, as letters; broken and hostile files cost themselves alone."""

from __future__ import annotations

from time import perf_counter

import pytest

from folio.bibliography import bibtex
from folio.bibliography.bibtex import attached
from folio.bibliography.entries import Entry, Problem
from folio.bibliography.latex import to_latex, to_text
from folio.papers.metadata import AND_OTHERS, PersonName

RAFT = r"""
% written by Zotero
@string{atc = "{USENIX} Annual Technical Conference"}
@inproceedings{ongaro2014,
  title = {In {Search} of an Understandable {Consensus} Algorithm --- it's 100\% {\textquoteleft}fun{\textquoteright}},
  author = {Ongaro, Diego and Ousterhout, John K.},
  booktitle = atc # ", " # 2014,
  year = 2014, month = jun,
  pages = {305--319},
  publisher = {{USENIX} Association},
  url = {https://www.usenix.org/raft},
  doi = {https://doi.org/10.5555/2643634.2643666},
  keywords = {consensus; logs},
  file = {Full Text:files/1/raft.pdf:application/pdf}
}
"""


def only(text: str) -> Entry:
    (entry,), problems = bibtex.read(text)
    assert problems == []
    return entry


def test_an_entry_with_a_string_a_month_and_latex() -> None:
    entry = only(RAFT)
    about = entry.describe()
    assert (entry.key, entry.line, entry.files) == ("ongaro2014", 4, ("files/1/raft.pdf",))
    assert (entry.year, entry.first_author, entry.doi) == (2014, "Ongaro", "10.5555/2643634.2643666")
    assert about.title.value == "In Search of an Understandable Consensus Algorithm — it's 100% ‘fun’"
    assert about.authors.value == (PersonName("Ongaro", "Diego"), PersonName("Ousterhout", "John K."))
    assert about.venue.value == "USENIX Annual Technical Conference, 2014"
    assert (about.kind.value, about.pages.value) == ("paper-conference", "305–319")
    assert about.publisher.value == "USENIX Association"
    assert about.tags.value == ("consensus", "logs")
    assert {(field.origin, field.sure) for field in about.known().values()} == {("bibliography", True)}


def test_biblatex() -> None:
    about = only(
        "@article{k, title={Part one}, subtitle={The rest}, author={family=Berg, given=Jan, prefix=van der and others},"
        " journaltitle={Acta}, date={2019-03-05/2019-04-01}, number=3, volume={12}, location={Bern},"
        " eprint={1905.00001v2}, eprinttype={arxiv}, groups={Ice, Snow}}"
    ).describe()
    assert (about.title.value, about.venue.value, about.year.value) == ("Part one: The rest", "Acta", 2019)
    assert about.authors.value == (PersonName("van der Berg", "Jan"), AND_OTHERS)
    assert (about.volume.value, about.issue.value, about.arxiv.value) == ("12", "3", "1905.00001v2")
    assert about.collections.value == ("Ice", "Snow")


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("Ludwig van Beethoven", [("van Beethoven", "Ludwig")]),
        ("de la Fuente, Mar{\\'\\i}a and {WHO Geneva}", [("de la Fuente", "María"), ("WHO Geneva", "")]),
        ("{Barnes and Noble, Inc.}", [("Barnes and Noble, Inc.", "")]),
        ("King, Jr., Martin Luther", [("King", "Martin Luther Jr.")]),
        ("{\\'E}douard {Masson} and \\\"{O}zg{\\\"u}r, A.", [("Masson", "Édouard"), ("Özgür", "A.")]),
        ("李, 明 and Plato", [("李", "明"), ("Plato", "")]),
        ("A. Otter\n and\tB. Seal and ", [("Otter", "A."), ("Seal", "B.")]),
        ("{Ada} and {Bo}", [("Ada", ""), ("Bo", "")]),
        (" ", []),
    ],
)  # fmt: skip
def test_names_are_split(written: str, names: list[tuple[str, str]]) -> None:
    found = only(f"@misc{{k, author={{{written}}}}}").describe().authors.value
    assert [(name.family, name.given) for name in found] == names


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"{\"U}ber Gr\"o\ss{}e, \v{C}apek \& {\L}\'od\'z", "Über Größe, Čapek & Łódź"),
        (r"A {Nested {Title}} -- 50% $\alpha$-helix", "A Nested Title – 50% α-helix"),
        ("``Quoted'' {text}~here --- so", "“Quoted” text here — so"),
        (r"\input{/etc/passwd}\emph{it} \unknown{x}", "it x"),
        ("{" * 5000 + r"\'e" + "}" * 5000, "é"),
        (r"\begin{a}" * 400, "aaaa"),
        ("a\x00b", "a b"),
        (r"CO$_2$ and CO$_{2}$ of 10$^{-4}$ x$^{n/2}$ T$_{\mathrm{max}}$", "CO₂ and CO₂ of 10⁻⁴ x^(n/2) T_max"),
    ],
)
def test_latex_becomes_letters(latex: str, text: str) -> None:
    assert to_text(latex)[: max(len(text), 1)] == text
    if len(latex) < 100:
        assert to_text(latex) == text


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("2⁶⁴ of CO₂ at 10⁻⁴", "2$^{64}$ of CO$_{2}$ at 10$^{-4}$"), ("2^k, 2^(n/2)", "2$^{k}$, 2$^{n/2}$"),
        ("a_b ^", r"a\_b \textasciicircum{}"), ("50% & {x}", r"50\% \& \textbraceleft{}x\textbraceright{}"),
    ],
)  # fmt: skip
def test_text_becomes_latex_and_comes_back(text: str, latex: str) -> None:
    assert to_latex(text) == latex
    assert to_text(latex) == text


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        ("Full Text:files/1/x.pdf:application/pdf", ["files/1/x.pdf"]),
        (":x.pdf:PDF", ["x.pdf"]),
        ("/home/me/a b.pdf", ["/home/me/a b.pdf"]),
        (r":C\:\\papers\\x.pdf:PDF", ["C:\\papers\\x.pdf"]),
        (r":a\;b\:c.pdf:PDF;Notes:n.txt:Text;Other:d.pdf:PDF", ["a;b:c.pdf", "d.pdf"]),
        ("Snapshot:files/2/index.html:text/html", []),
        (":home/me/x_y.pdf:pdf", ["home/me/x_y.pdf"]),
        ("x\x00.pdf", []),
        ("", []),
    ],
)
def test_attached_files(written: str, paths: list[str]) -> None:
    assert [path for path in attached(written) if path in paths] == paths
    assert bool(attached(written)) is bool(paths)


@pytest.mark.parametrize(
    ("entry", "kind", "genre", "venue"),
    [
        ("@phdthesis{k, school={ETH Zürich}}", "thesis", "PhD thesis", "ETH Zürich"),
        ("@thesis{k, type={mathesis}, institution={MIT}}", "thesis", "Master's thesis", "MIT"),
        ("@techreport{k, institution={CERN}, number={7}}", "report", "Technical report", "CERN"),
        ("@report{k, type={White paper}, institution={CERN}}", "report", "White paper", "CERN"),
        ("@article{k, journal={arXiv preprint arXiv:1706.03762}}", "article", "", ""),
        ("@misc{k, howpublished={\\url{https://x.org/a}}}", "", "", ""),
    ],
)
def test_kinds(entry: str, kind: str, genre: str, venue: str) -> None:
    about = only(entry).describe()
    assert (about.kind.value, about.genre.value, about.venue.value) == (kind, genre, venue)


def test_a_child_takes_what_it_lacks_from_its_parent_once() -> None:
    entries, _ = bibtex.read(
        "@inproceedings{a, title={Child}, crossref={b}}\n"
        "@proceedings{b, title={The Proceedings}, year=1999, crossref={a}}\n"
    )
    about = entries[0].describe()
    assert (about.title.value, about.venue.value, about.year.value) == ("Child", "The Proceedings", 1999)


@pytest.mark.parametrize(
    ("broken", "line"),
    [
        ("@article{a, title={x\n", 3),
        ("@article{a, title={x}, year=\n", 3),
        ('@article{a,\n title="x}, year=2000}\n', 3),
        ("@article{, title={x}}}}}}\n", 0),
        ("@article{a title={x}}\n", 3),
    ],
)
def test_a_broken_entry_costs_no_other_one(broken: str, line: int) -> None:
    entries, problems = bibtex.read(f"@misc{{first}}\n\n{broken}@book{{last, title={{Last}}}}\n")
    assert [entry.key for entry in entries if entry.key in ("first", "last")] == ["first", "last"]
    assert [problem.line for problem in problems] == [line] * bool(line)


def test_the_same_key_and_the_same_field_twice() -> None:
    entries, problems = bibtex.read("@misc{a, title={One}, title={Two}}\n@misc{a, title={Three}}")
    assert ([entry.title for entry in entries], problems) == (["One", "Three"], [])


@pytest.mark.parametrize(
    "hostile",
    [
        "@a{" * 30_000,
        "@a{\n" * 30_000,
        '@a{x, t="' * 10_000,
        "@misc{k, title={" + "{" * 100_000 + "}" * 100_000 + "}}",
        "@misc{k, author={" + "A and " * 50_000 + "}}",
        "@misc{k, title={" + r"\textbf" * 20_000 + "}}",
        '@string{a="xxxxxxxxxx"}\n' + "@string{a = a # a # a # a}\n" * 200 + "@misc{k, title=a}",
        "@misc{k, file={" + ":;" * 50_000 + "}}",
        "".join(f"@misc{{k{n}, crossref={{k{n + 1}}}, xdata={{k{n}}}}}\n" for n in range(2_000)),
        "\x00" * 100_000,
        " " * 500_000 + "@" * 1_000,
        "}" * 300_000,
    ],
)
def test_hostile_files_are_read_in_seconds(hostile: str) -> None:
    began = perf_counter()
    entries, _ = bibtex.read(hostile)
    for entry in entries[:100]:
        entry.describe()
    assert perf_counter() - began < 20


def test_an_entry_that_is_too_long_is_told() -> None:
    _, problems = bibtex.read("@misc{a}\n@misc{k, title={" + "x" * 10**6 + "}}")
    assert problems == [Problem(2, "The entry has more than 1,000,000 characters.")]
