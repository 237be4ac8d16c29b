"""TeX in a model's words: which backslashes JSON has taken for its own, and the letters that commands stand for. Pure.

The commands are those that pylatexenc knows, and a few more.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

# In no table of pylatexenc; those that JSON's \n, \r and \t begin
_MORE = frozenset(
    "ne neg newline nonumber nolimits num right rm real root tfrac triangle textstyle tag text tbinom".split()
)
# What math stands between
_MATH = re.compile(r"\$\$?[^$]{1,2000}\$\$?|\\{1,2}\(.{1,400}?\\{1,2}\)|\\{1,2}\[.{1,400}?\\{1,2}\]", re.S)
# Commands of which JSON's escape leaves a word or a letter: outside math they may be a line break and a word
_AMBIGUOUS = frozenset(
    "ne neg nexists ng ni nless nmid not nparallel nu num real ref rfloor right rm root rtimes tag tan tau text th to"
    " top tt".split()
)
_BRACED = r"\{([^{}\\]{0,200})\}"
_FRACTION = re.compile(rf"\\[dt]?frac\s*{_BRACED}\s*{_BRACED}")
_STYLED = re.compile(rf"\\(?:text|math|emph|operatorname|mbox|bm|boldsymbol|ensuremath)[a-z]*\s*{_BRACED}")
_SCRIPT = re.compile(r"([\^_])\{([^{}\\\s]{1,40})\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)(\s*+)|\\([%&_#$])")
_DELIMITER = re.compile(r"^(?:\$+|\\+[(\[])|(?:\$+|\\+[)\]])$")
_PATH = re.compile(r"\b[A-Za-z]:\\|^\\\\\w")
_SPACING = frozenset("left right displaystyle textstyle limits nolimits big Big bigl bigr quad qquad".split())
_SIMPLE = re.compile(r"[\w.]+")


def with_backslashes(raw: str) -> Callable[[re.Match[str]], bool]:
    r"""Tells for a backslash and the letters behind it, within this text of JSON, whether they are a command of TeX.

    JSON has no use for "\b" and "\f" before letters. "\n", "\r" and "\t" may be a line break or a tab before a word:
    they are TeX if all the letters together name a command. If they are a word without the first letter too ("\to"),
    they must stand in math, or behind a blank, a bracket or an operator, where no line ends.
    """
    math = [match.span() for match in _MATH.finditer(raw)]
    ends = [end for _, end in math]

    def is_tex(match: re.Match[str]) -> bool:
        name = match[1]
        if name[0] in "bf":
            return len(name) > 1
        before, after = raw[max(0, match.start() - 1) : match.start()], raw[match.end() : match.end() + 1]
        if not (is_command(name) or (name.startswith("text") and after == "{")):
            return False
        near = bisect_right(ends, match.start())
        if name not in _AMBIGUOUS or (near < len(math) and math[near][0] < match.start()):
            return True
        return after in ("{", "_", "^") or (before in ("", *" ([{=+-*/<>|&,_^") and after not in tuple(").:"))

    return is_tex


def is_command(name: str) -> bool:
    """Whether a command of TeX has this name."""
    return name in _MORE or name in _commands()


@lru_cache(maxsize=1)
def _commands() -> dict[str, str]:
    """Each known command and the letters that it stands for; "" if they depend on more than the name."""
    from pylatexenc import latex2text, latexwalker

    letters: dict[str, str] = {}
    for context in (latexwalker.get_default_latex_context_db(), latex2text.get_default_latex_context_db()):
        for category in context.category_list:
            for name, spec in context.d[category]["macros"].items():
                text = getattr(spec, "simplify_repl", None)
                is_plain = isinstance(text, str) and not re.search(r"[%<\n]", text)
                letters[name] = str(text) if is_plain else letters.get(name, "")
    return letters | {"ne": "≠", "neg": "¬", "triangle": "△"}


def plain_tex(text: str) -> str:
    r"""The text with letters in place of TeX: "$\beta$" is "β", "\frac{3}{4}" "3/4", "10^{-3}" "10^-3".

    What is no command, such as a path of Windows, stays.
    """
    if ("\\" not in text and "{" not in text) or _PATH.search(text):
        return text
    return _letters(_MATH.sub(_without_dollars, text) if "\\" in text else text, is_math=False)


def _without_dollars(match: re.Match[str]) -> str:
    """What math says, if that is more than it shows; "$5 and $6" stay."""
    inner = _DELIMITER.sub("", match.group())
    letters = _letters(inner, is_math=True)
    return letters.strip() if letters != inner else match.group()


def _letters(text: str, *, is_math: bool) -> str:
    def command(match: re.Match[str]) -> str:
        name = match[1]
        if not name:
            return match[3]
        if name in _SPACING:
            return " " if "quad" in name else ""
        letters = _commands().get(name, "")
        if not letters:
            return match.group()
        return letters + ("" if is_math and not letters.isascii() else match[2])

    text = _STYLED.sub(r"\1", text)
    text = _FRACTION.sub(lambda part: f"{_grouped(part[1])}/{_grouped(part[2])}", text)
    if "\\" in text:
        text = _COMMAND.sub(command, re.sub(r"\\[,;:!]", " ", text) if is_math else text)
    return _SCRIPT.sub(r"\1\2", text)


def _grouped(part: str) -> str:
    return part.strip() if _SIMPLE.fullmatch(part.strip()) or len(part.strip()) == 1 else f"({part.strip()})"
