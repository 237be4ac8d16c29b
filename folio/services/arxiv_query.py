"""A search as a person writes it, in arXiv's query language. Pure.

`"retrieval augmented generation" OR RAG`, `ti:attention ANDNOT au:smith`, `cat:cs.CL AND (bias OR fairness)` go out as
they are written. Terms side by side must all be there, and a term without a field may be in any.
https://info.arxiv.org/help/api/user-manual.html#query_details
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from folio.errors import UsageError
from folio.shown_text import name_line

_FIELDS = "ti|au|abs|co|jr|cat|rn|id|all"
_DATES = r"(?:submittedDate|lastUpdatedDate):\[\d{4,14}\ TO\ \d{4,14}\]"
_WORD = r"[\w.-]*\w[\w.-]*"
_TOKEN = re.compile(
    rf"""(?P<dates>{_DATES})
    | (?P<field>\b(?:{_FIELDS})):(?: "(?P<in_field>[^"]+)" | (?P<value>[^\s()"]*\w[^\s()"]*))
    | "(?P<phrase>[^"]+)"
    | (?P<paren>[()])
    | (?P<word>{_WORD})""",
    re.X,
)
_OPERATOR = {"AND": "AND", "OR": "OR", "ANDNOT": "ANDNOT", "NOT": "ANDNOT"}
_NO_WORDS = UsageError("The search has no words.", 'Name some: --search "dense retrieval".')


def has_operator(search: str) -> bool:
    """Whether a search in arXiv's language joins several terms in another way than by AND."""
    outside = re.sub(r'"[^"]*"', "", search)
    return bool(re.search(r"\b(?:OR|ANDNOT)\b", outside))


def to_arxiv(written: str) -> str:
    """The search in arXiv's language. Raises UsageError if it has no words, or an operator without two sides."""
    tokens = _tokens(written)
    if not any(kind == "term" for kind, _ in tokens):
        raise _NO_WORDS
    if all(kind == "term" or text in "()" for kind, text in tokens):
        return " AND ".join(text for kind, text in tokens if kind == "term")
    parts: list[str] = []
    previous = "("  # what is before the next token: "(", "term", "operator"
    depth = 0
    for kind, text in [*tokens, ("end", "")]:
        if previous in ("(", "operator") and kind not in ("term", "("):
            raise _incomplete(written, parts)
        if previous in ("term", ")") and kind in ("term", "("):
            parts.append("AND")
        depth += {"(": 1, ")": -1}.get(kind, 0)
        if depth < 0 or (kind == "end" and depth):
            raise UsageError("The parentheses of the search do not match.", "Close each one that you open.")
        parts.append(text)
        previous = kind
    return " ".join(parts[:-1]).replace("( ", "(").replace(" )", ")")


def _tokens(written: str) -> list[tuple[str, str]]:
    """Pairs of a kind ("term", "operator", "(", ")") and the text for arXiv."""
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(written):
        if match["paren"]:
            tokens.append((match["paren"], match["paren"]))
        elif match["word"] in _OPERATOR:
            operator = _OPERATOR[match["word"]]
            if operator == "ANDNOT" and tokens and tokens[-1] == ("operator", "AND"):
                tokens.pop()  # "AND NOT"
            tokens.append(("operator", operator))
        else:
            tokens.append(("term", _term(match)))
    return tokens


def _term(match: re.Match[str]) -> str:
    if match["dates"]:
        return match["dates"]
    quoted = match["in_field"] or match["phrase"]
    value = f'"{" ".join(quoted.split())}"' if quoted else match["value"] or match["word"]
    return f"{match['field'] or 'all'}:{value}"


def _incomplete(written: str, parts: Sequence[str]) -> UsageError:
    operator = parts[-1] if parts and parts[-1] != "(" else "An operator or a parenthesis"
    happened = f"{operator} stands without a term beside it in the search: {name_line(written, 80)}"
    return UsageError(f"{happened}.", 'Write it like: "dense retrieval" OR RAG. A word in quotes is only a word: "or".')
