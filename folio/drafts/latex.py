r"""Reads a draft in LaTeX: \cite and its kin, with the .bib files that it names. Macros that it does not know are
tolerated. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from folio.bibliography.latex import LONGEST, to_text
from folio.drafts.draft import NARRATIVE, Cited, Draft, Marker, Paragraph, without_marks
from folio.papers import references

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*")
_BODY = re.compile(r"\\begin\{document\}(?P<body>.*?)(?:\\end\{document\}|\Z)", re.S)
# What is no text: code, formulas, pictures
_LEFT_OUT = re.compile(
    r"\\begin\{(?P<kind>verbatim|Verbatim|lstlisting|minted|comment|equation|align|gather|multline|eqnarray|math"
    r"|displaymath|tikzpicture|thebibliography|filecontents|tabular|tabularx|algorithm|algorithmic)(?P<star>\*?)\}.*?"
    r"(?:\\end\{(?P=kind)(?P=star)\}|\Z)|\\\[.*?\\\]|\$\$.*?\$\$|\\iffalse\b.*?\\fi\b",
    re.S,
)
_CITE = re.compile(
    r"\\(?P<macro>[A-Za-z]*[Cc]ite[A-Za-z]*)\*?\s*(?:\[[^\[\]]{0,300}\]\s*){0,3}\{(?P<keys>[^{}]{1,2000})\}"
)
_NAMES_AUTHORS = re.compile(r"citet|textcite|citeauthor", re.I)
_NOT_CITED = re.compile(r"nocite|citestyle|citation|citealias|defcite", re.I)
_BIB = re.compile(
    r"\\(?:bibliography|addbibresource|addglobalbib|addsectionbib)\s*(?:\[[^\[\]]*\])?\s*\{([^{}]{1,1000})\}"
)
_INPUT = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}]{1,300})\}")
_ITEM = re.compile(
    r"\\bibitem(?:\[[^\[\]]*\])?\s*\{(?P<key>[^{}]+)\}(?P<text>.*?)(?=\\bibitem|\\end\{thebibliography\}|\Z)", re.S
)
# Commands whose argument is no text of a sentence
_DROPPED = re.compile(
    r"\\(?:label|ref|eqref|autoref|cref|Cref|pageref|vspace|hspace|includegraphics|bibliographystyle|usepackage|input"
    r"|include|subfile|pagestyle|thispagestyle|setcounter|setlength|newcommand|renewcommand|begin|end|index|todo"
    r"|section|subsection|subsubsection|chapter|part|paragraph|subparagraph|title|author|date|caption|bibliography"
    r"|addbibresource|url)\*?\s*(?:\[[^\[\]]*\]\s*)*\{(?:[^{}]|\{[^{}]*\})*\}"
)
_UNIT = re.compile(r"\\(?:SI|qty)\s*(?:\[[^\[\]]*\])?\{(?P<number>[^{}]*)\}\s*\{(?P<unit>[^{}]*)\}")
_NUMBER = re.compile(r"\\num\s*(?:\[[^\[\]]*\])?\{([^{}]*)\}")
_PERCENT = re.compile(r"\\percent\b")
_PARAGRAPH = re.compile(r"(?:^[^\n]*\S[^\n]*(?:\n|\Z))+", re.M)
_ITEM_OF_LIST = re.compile(r"\\item\b(?:\s*\[[^\[\]]*\])?")


def read(text: str) -> Draft:
    """A draft from LaTeX, without the bibliographies that it names: see `bib_files`."""
    text = _COMMENT.sub(r"\1", without_marks(text))
    body = _BODY.search(text)
    first_line = text.count("\n", 0, body.start("body")) + 1 if body else 1
    listed = tuple(
        references.Entry(item.start("text"), item.end("text"), to_text(item["text"]), item["key"].strip())
        for item in _ITEM.finditer(text)
    )
    problems = [f"\\input{{{name}}} is another file; check it by itself." for name in _INPUT.findall(text)]
    marker, paragraphs = Marker(), list[Paragraph]()
    for line, each in _paragraphs(_without(_LEFT_OUT, body["body"] if body else text), first_line):
        if len(each) > LONGEST:
            problems.append(f"The paragraph at line {line:,} has more than {LONGEST:,} characters and was left out.")
            continue
        paragraphs.append(Paragraph(line, to_text(_plain(_marked(each, line, marker)))))
    return Draft(tuple(paragraphs), tuple(marker.groups), listed, (), tuple(problems))


def bib_files(text: str) -> list[str]:
    """The names of the .bib files that a draft names, each with its ending."""
    named = (name.strip() for found in _BIB.findall(_COMMENT.sub(r"\1", text)) for name in found.split(","))
    return list(dict.fromkeys(name if name.endswith(".bib") else f"{name}.bib" for name in named if name))


def _without(pattern: re.Pattern[str], text: str) -> str:
    """The text without matches of a pattern, in the same lines."""
    return pattern.sub(lambda found: "\n" * found.group().count("\n") or " ", text)


def _paragraphs(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Each paragraph, and each item of a list, with the number of its first line."""
    text = _without(_DROPPED_TO_A_BREAK, text)
    for block in _PARAGRAPH.finditer(text):
        starts = [block.start(), *(item.start() for item in _ITEM_OF_LIST.finditer(text, block.start(), block.end()))]
        for start, end in zip(starts, [*starts[1:], block.end()], strict=True):
            if each := _ITEM_OF_LIST.sub(" ", text[start:end]).strip("\n"):
                yield first_line + text.count("\n", 0, start), each


# A heading ends a paragraph.
_DROPPED_TO_A_BREAK = re.compile(
    r"\\(?:sub)*(?:section|chapter|part|paragraph)\*?\s*(?:\[[^\[\]]*\])?\{(?:[^{}]|\{[^{}]*\})*\}"
)


def _marked(text: str, line: int, marker: Marker) -> str:
    def cite(found: re.Match[str]) -> str:
        if _NOT_CITED.search(found["macro"]):
            return " "
        keys = [key.strip() for key in found["keys"].split(",")]
        at = line + found.string.count("\n", 0, found.start())
        mark = marker.mark(at, [Cited("key", key, shown=f"\\{found['macro']}{{{key}}}") for key in keys if key])
        return f"{NARRATIVE if _NAMES_AUTHORS.match(found['macro']) else ''}{mark} "

    return _CITE.sub(cite, text)


def _plain(text: str) -> str:
    """The text without the commands that say nothing in a sentence, and with plain units."""
    text = _UNIT.sub(lambda found: f"{found['number']} {_unit(found['unit'])}", text)
    text = _NUMBER.sub(r"\1", _PERCENT.sub(r"\\%", text))
    for _ in range(2):  # one may be in another
        text = _DROPPED.sub(" ", text)
    return text.replace("~", " ")


def _unit(macros: str) -> str:
    r"""The unit of siunitx in letters: \kilo\metre is "kilometre"."""
    joined = macros.replace("\\per", " per ").replace("\\percent", "%")
    return re.sub(r"\\", "", joined).strip()
