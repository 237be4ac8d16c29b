"""Makes text of papers, models and people safe to show: no control characters, nothing like a citation. Pure.

Folio's citations have the forms [Ongaro 2014, p. 6] and [otters.pdf p.7]. In shown text, square brackets around a page
reference, and brackets that look like square ones, become round. JSON keeps the text unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.text import one_line, whole_words

REWORDED_SIGN = "≈"  # before a statement in a model's own words
# Words after a name in a citation: the paper's notice, the gravest first
NOTICE_MARKS = ("RETRACTED", "WITHDRAWN", "REMOVED", "PARTLY RETRACTED", "CONCERN")
LONGEST_NAME = 200  # characters of a title, a name or a file name
_LONGEST_KEY = 100  # of the name in a citation

# Default-ignorable characters that Python calls printable: they are invisible or blank
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_SELECTORS = "".join(map(chr, (*range(0x180B, 0x180E), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
# Zero-width joiners next to ASCII or at an end, where no script needs them
_JOINERS = re.compile(r"(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])")
_KEPT = "\n\u200c\u200d"

_OPENING, _CLOSING = "[［〔【〖〘〚❲⟦⟬⁅﹝⦋⦍⦏", "]］〕】〗〙〛❳⟧⟭⁆﹞⦌⦎⦐"
_BRACKET = re.compile(f"[{re.escape(_OPENING + _CLOSING)}]")
_DOT = r"[.․．｡。·‧∙⋅•…]"
# "p.7", "pp. 3-4" or "Section 3" before a closing bracket, and " р.l" in letters that look like these
_PAGE = re.compile(
    rf"(?:[^\W\d_](?:\s|{_DOT}){{1,3}}\d+|\bpp?\d+|\s[^\W\d_]\s?{_DOT}\s?\w{{1,8}})(?:\s?[,;–-]\s?\d+)*\W{{0,3}}\Z"
)
# A file name or an arXiv number that needs no quotation marks in a citation
_PLAIN_NAME = re.compile(r"[\w./:+\ufffd…-]+")
_QUOTES = re.compile('["“”„‟«»]')
_REACH = 40  # characters before a closing bracket that may be a page reference
# The beginning of a numbered line, such as an item of the sources or the head of a piece of evidence
_NUMBERED = re.compile(rf"\A(?:\[(?P<evidence>\d+)\]|(?P<item>\d+){_DOT})(?=\s|\Z)")
_BRACKETED_NUMBERS = re.compile(
    rf"[{re.escape(_OPENING)}](?P<numbers>\s*\w?\d{{1,5}}\w?(?:\s*[,;–-]\s*\w?\d{{1,5}}\w?)*\s*)[{re.escape(_CLOSING)}]"
)
_LINE_END = re.compile(r"\r\n?|\n")
_BLANK_LINES = re.compile(r"\n\s*\n")
_TAB = 4  # columns
# A command in a message, between backticks
COMMAND = re.compile(r"(?<!`)`([^\s`](?:[^`]*[^\s`])?)`(?!`)")


def plain(text: str) -> str:
    """Text without control characters, and without the form of Folio's citations. Line feeds stay."""
    return _without_citations(visible_text(text))


def plain_line(text: str) -> str:
    """Like `plain`, on one line: a file name or a quote with line breaks could look like other output."""
    return plain(one_line(text))


def sentence_line(text: str) -> str:
    """Like `plain_line`, for text at the start of a line: "1. x", the form of a source, becomes "1) x".

    The sign of a reworded statement at the start becomes "~".
    """

    def renumbered(match: re.Match[str]) -> str:
        return f"({match['evidence']})" if match["evidence"] else f"{match['item']})"

    line = _NUMBERED.sub(renumbered, plain_line(text))
    return f"~{line.removeprefix(REWORDED_SIGN)}" if line.startswith(REWORDED_SIGN) else line


def statement_lines(text: str) -> tuple[str, ...]:
    """A statement line by line: a list, code or a table keeps its line breaks, indents and columns.

    A statement of one line is shown by `sentence_line`. Show several lines indented: they may begin like Folio's own.
    """
    lines = _LINE_END.sub("\n", text).expandtabs(_TAB).split("\n")
    visible = _BLANK_LINES.sub("\n\n", "\n".join(visible_text(line).rstrip() for line in lines)).strip("\n")
    if "\n" not in visible:
        return (sentence_line(text),)
    # Citations are searched for in one line, so that no spaces hide them.
    flat = one_line(visible)
    without = _without_citations(flat)
    brackets = iter([without[match.start()] for match in _BRACKET.finditer(flat)])
    return tuple(_BRACKET.sub(lambda _: next(brackets), visible).split("\n"))


def marked_parts(shown: str, text: str, marks: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """A shown text in parts, each with whether it is marked. marks: spans [start, end) of the original text.

    Shown text differs from the original in spaces and joiners, so marks are mapped by counting all other characters.
    """
    ink = [place for place, char in enumerate(shown) if _has_ink(char)]
    parts: list[tuple[str, bool]] = []
    at = 0
    for start, end in marks:
        first, last = (sum(map(_has_ink, text[:offset])) for offset in (start, end))
        if last <= first or last > len(ink):
            continue
        parts += [(shown[at : ink[first]], False), (shown[ink[first] : ink[last - 1] + 1], True)]
        at = ink[last - 1] + 1
    return [part for part in (*parts, (shown[at:], False)) if part[0]]


def _has_ink(char: str) -> bool:
    return not char.isspace() and char not in _KEPT


def split_commands(text: str) -> list[tuple[str, bool]]:
    """A message in parts, each with whether it is a command. The backticks around commands are removed."""
    parts = COMMAND.split(text)
    return [(part, place % 2 == 1) for place, part in enumerate(parts) if part]


def counted(count: int, what: str) -> str:
    """A count in words: "1 paper", "1,200 papers"."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def short_line(text: str, longest: int) -> str:
    """Like `plain_line`, cut at the end of a word to at most `longest` characters."""
    line = plain_line(text)
    if len(line) <= longest:
        return line
    return _without_citations(f"{whole_words(line, longest - 2)} …")


def name_line(text: str, longest: int = LONGEST_NAME) -> str:
    """Like `plain_line`, for a title, a person or a file: the middle of a long name is left out."""
    line = visible_text(one_line(text))
    if len(line) > longest:
        tail = longest // 3
        line = f"{line[: longest - tail - 1]}…{line[-tail:]}"
    return _without_citations(line)


def citation_mark(key: str, page: int, flag: str = "") -> str:
    """A citation by file name or arXiv number: "[otters.pdf p.7]". No text that this module shows contains one.

    A name with spaces or commas gets quotation marks, so that it cannot pass for a label or a second citation:
    "[“Ongaro 2014,.pdf” p.7]". flag: a word of NOTICE_MARKS: "[otters.pdf, RETRACTED p.7]".
    """
    is_quoted = key[:1] == "“" and key[-1:] == "”"
    name = _bare_key(key[1:-1] if is_quoted else key, _LONGEST_KEY - 2)
    if not _PLAIN_NAME.fullmatch(name):
        name = "“" + _QUOTES.sub("'", name) + "”"
    return f"[{_flagged(name, flag)} p.{page}]"


def label_mark(label: str, page: int, flag: str = "") -> str:
    """A citation by author and year: "[Ongaro 2014, p. 6]". No text that this module shows contains one."""
    return f"[{_flagged(_bare_key(label, _LONGEST_KEY), flag)}, p. {page}]"


# How a quote disagrees (answer_types.Disagreement), after one citation and after several; "" in older answers
_DISAGREES = {
    "": ("says otherwise", "say otherwise"),
    "denial": ("says otherwise", "say otherwise"),
    "number": ("gives another number", "give another number"),
    "condition": ("gives another number for another condition", "give other numbers for other conditions"),
}


def disagrees(how: str, count: int = 1) -> str:
    """What a citation that disagrees does: "gives another number". count: of citations."""
    return _DISAGREES[how][count > 1]


def number_mark(number: int, flag: str = "") -> str:
    """A citation by its number in the list of sources: "[3]", "[3, RETRACTED]". See `without_numbers`."""
    return f"[{_flagged(str(number), flag)}]"


def without_numbers(text: str) -> str:
    """Text with round brackets for square ones around numbers: "[12, 14]", "[3-5]". The length stays the same.

    For output with numbered citations.
    """
    return _BRACKETED_NUMBERS.sub(r"(\g<numbers>)", text)


def mark_again(shown: str, page: int, flag: str | None = None) -> str:
    """A citation that any version has displayed, made again: whatever its name holds, it is one citation of this page.

    flag: its word now; None keeps the old word.
    """
    label, comma, _ = shown.removeprefix("[").rpartition(", p. ")
    make = label_mark if comma and shown.endswith(f", p. {page}]") else citation_mark
    name = label if make is label_mark else shown.removeprefix("[").rpartition(" p.")[0]
    had = next((word for word in NOTICE_MARKS if name.endswith(f", {word}")), "")
    return make(name.removesuffix(f", {had}") if had else name, page, had if flag is None else flag)


def _flagged(name: str, flag: str) -> str:
    return f"{name}, {flag}" if flag else name


def _bare_key(key: str, longest: int) -> str:
    """A name without brackets, on one line."""
    visible = _JOINERS.sub("\ufffd", "".join("\ufffd" if char in _SELECTORS else char for char in key))
    bare = _BRACKET.sub(lambda match: "(" if match.group() in _OPENING else ")", visible)
    return name_line(bare, longest)


def page_words(pages: tuple[int, int]) -> str:
    """The first and last page in words: "p. 3" or "pp. 3–4"."""
    first, last = pages
    return f"p. {first}" if first == last else f"pp. {first}–{last}"


def visible_text(text: str) -> str:
    """Text with a mark in place of each control character and each invisible one."""
    return "".join(map(_shown, _JOINERS.sub("", text)))


def _shown(char: str) -> str:
    if char in _BLANK:
        return "\ufffd"
    return char if char.isprintable() or char in _KEPT else " " if char.isspace() else "\ufffd"


def _without_citations(text: str) -> str:
    """Text with round brackets for the square ones around a page reference."""
    opened: list[int] = []
    rounded: dict[int, str] = {}
    for match in _BRACKET.finditer(text):
        at = match.start()
        if match.group() in _OPENING:
            opened.append(at)
            continue
        start = opened.pop() if opened else None
        if _PAGE.search(text, max(0, at - _REACH), at):
            rounded[at] = ")"
            if start is not None:
                rounded[start] = "("
    if not rounded:
        return text
    return "".join(rounded.get(at, char) for at, char in enumerate(text))


# Words about statements and the evidence of a deep answer. The web page has its own, in statement.js.
IN_PLACE = "In place of a statement that the papers do not support:"
LEFT_OUT = "Left out"
MAY_NOT_ANSWER = "These are about the topic, and may not answer the question."
AGREE, DIFFER, OPEN = "Where the papers agree", "Where they differ", "Open questions"
AGE_AND_CONFIDENCE, ABOUT_EVIDENCE = "Age and confidence of the evidence", "About the evidence"
PROFILE_HEADINGS = (AGREE, DIFFER, OPEN, AGE_AND_CONFIDENCE, ABOUT_EVIDENCE)
REASONS_NOT_KEPT = "The statements that were left out were not kept with this answer."


def legend(verifiers: Sequence[str]) -> str:
    """The meaning of the sign before reworded statements; "" if there are none.

    verifiers: for each reworded statement, the verifier that agreed with it; "" if none ran.
    """
    if not verifiers:
        return ""
    unchecked = verifiers.count("")
    names = ", ".join(name_line(name) for name in dict.fromkeys(verifiers) if name)
    if unchecked == len(verifiers):
        checked = "Not checked by a verifier."
    elif unchecked:
        checked = f"{unchecked} of {len(verifiers)} not checked by a verifier, the others by {names}."
    else:
        checked = f"Checked by {names}."
    return f"{REWORDED_SIGN} in the model's own words; the quote stands beneath. {checked}"
