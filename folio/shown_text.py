"""Text of papers, models and people as it is shown: it controls no terminal and cannot pass for a citation. Pure.

Folio's citations have the forms [Ongaro 2014, p. 6] and [otters.pdf p.7]. In text that is shown, square brackets around
a page reference become round ones, and so do brackets that look like square ones. JSON keeps the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.text import one_line, whole_words

REWORDED_SIGN = "≈"  # before a statement in a model's own words
# After a name in a citation: what became of the paper (papers' notices, most grave first)
NOTICE_MARKS = ("RETRACTED", "WITHDRAWN", "REMOVED", "PARTLY RETRACTED", "CONCERN")
LONGEST_NAME = 200  # characters of a title, a name or a file name
_LONGEST_KEY = 100  # of the name in a citation

# Default-ignorable characters that Python calls printable: they take no place, or a blank one.
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_SELECTORS = "".join(map(chr, (*range(0x180B, 0x180E), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
# Zero-width joiners, which some scripts need, but not beside ASCII or at an end
_JOINERS = re.compile(r"(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])")
_KEPT = "\n\u200c\u200d"

_OPENING, _CLOSING = "[［〔【〖〘〚❲⟦⟬⁅﹝⦋⦍⦏", "]］〕】〗〙〛❳⟧⟭⁆﹞⦌⦎⦐"
_BRACKET = re.compile(f"[{re.escape(_OPENING + _CLOSING)}]")
_DOT = r"[.․．｡。·‧∙⋅•…]"
# "p.7", "pp. 3-4" or "Section 3" before a closing bracket, and " р.l" in letters that look like these
_PAGE = re.compile(
    rf"(?:[^\W\d_](?:\s|{_DOT}){{1,3}}\d+|\bpp?\d+|\s[^\W\d_]\s?{_DOT}\s?\w{{1,8}})(?:\s?[,;–-]\s?\d+)*\W{{0,3}}\Z"
)
# A file's name or an arXiv number that needs no quotation marks in a citation
_PLAIN_NAME = re.compile(r"[\w./:+\ufffd…-]+")
_QUOTES = re.compile('["“”„‟«»]')
_REACH = 40  # characters before a closing bracket in which a page reference is looked for
# The beginning of a numbered line, such as an item of the sources or the head of a piece of evidence
_NUMBERED = re.compile(rf"\A(?:\[(?P<evidence>\d+)\]|(?P<item>\d+){_DOT})(?=\s|\Z)")
_BRACKETED_NUMBERS = re.compile(
    rf"[{re.escape(_OPENING)}](?P<numbers>\s*\w?\d{{1,5}}\w?(?:\s*[,;–-]\s*\w?\d{{1,5}}\w?)*\s*)[{re.escape(_CLOSING)}]"
)
_LINE_END = re.compile(r"\r\n?|\n")
_BLANK_LINES = re.compile(r"\n\s*\n")
_TAB = 4  # columns


# A command in a message: between two backticks, and as it is typed
COMMAND = re.compile(r"(?<!`)`([^\s`](?:[^`]*[^\s`])?)`(?!`)")


def plain(text: str) -> str:
    """Text without control characters and without the form of our citations. Line feeds stay."""
    return _without_citations(_visible(text))


def plain_line(text: str) -> str:
    """Like `plain`, on one line: with line breaks, a file name or a quote could look like other output."""
    return plain(one_line(text))


def sentence_line(text: str) -> str:
    """Like `plain_line`, for text that begins a line: "1. x" becomes "1) x", for the sources are numbered so.

    The sign of a reworded statement at its beginning becomes "~".
    """

    def other(found: re.Match[str]) -> str:
        return f"({found['evidence']})" if found["evidence"] else f"{found['item']})"

    line = _NUMBERED.sub(other, plain_line(text))
    return f"~{line.removeprefix(REWORDED_SIGN)}" if line.startswith(REWORDED_SIGN) else line


def statement_lines(text: str) -> tuple[str, ...]:
    """A statement line by line: a list, code or a table keeps its line breaks, indents and columns.

    A statement of one line is as `sentence_line` shows it. The lines of others may begin like output of ours: show them
    indented, where none of ours begins.
    """
    lines = _LINE_END.sub("\n", text).expandtabs(_TAB).split("\n")
    visible = _BLANK_LINES.sub("\n\n", "\n".join(_visible(line).rstrip() for line in lines)).strip("\n")
    if "\n" not in visible:
        return (sentence_line(text),)
    # A citation is looked for as if the text were on one line, so that no spaces hide it.
    flat = one_line(visible)
    other = _without_citations(flat)
    shown = iter([other[found.start()] for found in _BRACKET.finditer(flat)])
    return tuple(_BRACKET.sub(lambda _: next(shown), visible).split("\n"))


def marked_parts(shown: str, text: str, marks: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """What is shown of a text in parts, each with whether it is marked. marks: spans [start, end) of the text.

    What this module shows of a text differs in its spaces, and in characters that stand for one each; so the marks are
    found by counting the characters that are neither spaces nor joiners.
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
    """A message of Folio in parts, each with whether it is a command: those stand between backticks, which go."""
    parts = COMMAND.split(text)
    return [(part, place % 2 == 1) for place, part in enumerate(parts) if part]


def counted(count: int, what: str) -> str:
    """A count of things as words: "1 paper", "1,200 papers"."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def short_line(text: str, longest: int) -> str:
    """Like `plain_line`: at most `longest` characters, cut at the end of a word."""
    line = plain_line(text)
    if len(line) <= longest:
        return line
    return _without_citations(f"{whole_words(line, longest - 2)} …")


def name_line(text: str, longest: int = LONGEST_NAME) -> str:
    """Like `plain_line`, for a title, a person or a file: at most `longest` characters, without the middle."""
    line = _visible(one_line(text))
    if len(line) > longest:
        tail = longest // 3
        line = f"{line[: longest - tail - 1]}…{line[-tail:]}"
    return _without_citations(line)


def citation_mark(key: str, page: int, flag: str = "") -> str:
    """A citation of a file or a number as displayed: "[otters.pdf p.7]". No text that this module shows contains one.

    A name with spaces or commas has quotation marks, so that nothing in it passes for a label or for a second citation:
    "[“Ongaro 2014,.pdf” p.7]". flag: a word of Folio's own, such as in "[otters.pdf, RETRACTED p.7]".
    """
    is_quoted = key[:1] == "“" and key[-1:] == "”"
    name = _bare_key(key[1:-1] if is_quoted else key, _LONGEST_KEY - 2)
    if not _PLAIN_NAME.fullmatch(name):
        name = "“" + _QUOTES.sub("'", name) + "”"
    return f"[{_flagged(name, flag)} p.{page}]"


def label_mark(label: str, page: int, flag: str = "") -> str:
    """A citation by author and year as displayed: "[Ongaro 2014, p. 6]". No text that this module shows has one."""
    return f"[{_flagged(_bare_key(label, _LONGEST_KEY), flag)}, p. {page}]"


def number_mark(number: int, flag: str = "") -> str:
    """A citation by its place in the list of sources: "[3]", "[3, RETRACTED]". See `without_numbers`."""
    return f"[{_flagged(str(number), flag)}]"


def without_numbers(text: str) -> str:
    """Text with round brackets for the square ones around numbers, where citations are numbered: "[12, 14]", "[3-5]".

    Each character stands for one, so that spans of the text hold for what is returned.
    """
    return _BRACKETED_NUMBERS.sub(r"(\g<numbers>)", text)


def mark_again(shown: str, page: int, flag: str | None = None) -> str:
    """A citation as it was displayed once, by any version: whatever its name holds, it is one citation of this page.

    flag: the word that it has now; None for the one that it had.
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
    bare = _BRACKET.sub(lambda found: "(" if found.group() in _OPENING else ")", visible)
    return name_line(bare, longest)


def page_words(pages: tuple[int, int]) -> str:
    """The first and the last page as people write them: "p. 3" or "pp. 3–4"."""
    first, last = pages
    return f"p. {first}" if first == last else f"pp. {first}–{last}"


def _visible(text: str) -> str:
    """Text with a mark in place of each character that controls or hides something."""
    return "".join(map(_shown, _JOINERS.sub("", text)))


def _shown(char: str) -> str:
    if char in _BLANK:
        return "\ufffd"
    return char if char.isprintable() or char in _KEPT else " " if char.isspace() else "\ufffd"


def _without_citations(text: str) -> str:
    """Text with round brackets for the square ones around a page reference."""
    opened: list[int] = []
    rounded: dict[int, str] = {}
    for found in _BRACKET.finditer(text):
        at = found.start()
        if found.group() in _OPENING:
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


# Words for what became of a statement, and for the evidence of a deep answer. The page's are in statement.js.

IN_PLACE = "In place of a statement that the papers do not support:"
LEFT_OUT = "Left out"
MAY_NOT_ANSWER = "These are about the topic, and may not answer the question."
AGREE, DIFFER, OPEN = "Where the papers agree", "Where they differ", "Open questions"
AGE_AND_CONFIDENCE, ABOUT_EVIDENCE = "Age and confidence of the evidence", "About the evidence"
PROFILE_HEADINGS = (AGREE, DIFFER, OPEN, AGE_AND_CONFIDENCE, ABOUT_EVIDENCE)
REASONS_NOT_KEPT = "The statements that were left out were not kept with this answer."


def legend(verifiers: Sequence[str]) -> str:
    """What the sign before a reworded statement means; "" if there is none.

    verifiers: of each reworded statement, the verifier that agreed with it; "" where none ran.
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
