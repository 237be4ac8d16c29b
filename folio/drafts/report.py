"""The report of a checked draft as one HTML file without scripts, readable in light and dark. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from folio.answer_types import Citation
from folio.drafts.checking import CheckedDraft, CheckedSentence
from folio.drafts.claims import CheckedClaim
from folio.drafts.judging import Verdict
from folio.shown_text import counted, plain_line

# The worst first
VERDICTS: tuple[Verdict, ...] = ("contradicted", "number differs", "not found", "supported", "quoted")
_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1b1b; --dim: #5c5c5c; --line: #d4d4d4; --bad: #a4262c;
  --unsure: #8a5a00; --good: #17692f; }
@media (prefers-color-scheme: dark) { :root { --page: #16181b; --ink: #e8e8e8; --dim: #a8a8a8; --line: #3a3d42;
  --bad: #ff8f8f; --unsure: #f0c060; --good: #7fd99a; } }
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; max-width: 46rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
article { border-top: 1px solid var(--line); padding: 1rem 0; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } p { margin: .3rem 0; }
.line, footer { color: var(--dim); } .contradicted, .number-differs { color: var(--bad); }
.not-found { color: var(--unsure); } .supported, .quoted { color: var(--good); } .verdict { font-weight: 600; }
blockquote { margin: .4rem 0; padding-left: .8rem; border-left: 3px solid var(--line); } cite { font-style: normal; }
"""


def html_report(checked: CheckedDraft) -> str:
    """The report. Text of the draft and of papers is escaped."""
    title = f"Citations of {_text(checked.file)}"
    body = "\n".join(_body(checked, title))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def summary(checked: CheckedDraft) -> str:
    """One line: "12 sentences checked: 1 contradicted, 2 not found, 9 supported"."""
    counts = {verdict: sum(each.verdict == verdict for each in checked.sentences) for verdict in VERDICTS}
    parts = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items() if count)
    return f"{counted(len(checked.sentences), 'sentence')} checked{f': {parts}' if parts else ''}."


def _body(checked: CheckedDraft, title: str) -> Iterator[str]:
    yield f"<h1>{title}</h1>\n<p>{_text(summary(checked))}</p>"
    yield from (f"<p>{_text(problem)}</p>" for problem in checked.problems)
    for heading, sentences in (
        ("To look at", checked.trouble),
        ("The others", [each for each in checked.sentences if not each.is_trouble]),
    ):
        if sentences:
            yield f"<h2>{heading}</h2>"
            yield from map(_sentence, sentences)
    if checked.not_here:
        items = "".join(f"<li>{_text(str(cited))} (line {line:,})</li>" for line, cited in checked.not_here)
        yield f"<h2>Not in the library</h2>\n<ul>{items}</ul>"
    yield (
        "<footer><p>“Supported” means that one place of a cited paper says all of the sentence in similar words. What"
        " is in doubt is “not found”, also where a person would agree: read the place before you change a sentence.</p>"
        "</footer>"
    )


def _sentence(sentence: CheckedSentence) -> str:
    verdict = sentence.verdict
    parts = [
        f'<p><span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'
        f' <span class="line">line {sentence.line:,}</span></p>',
        f"<p>{_text(sentence.text)}</p>",
    ]
    for claim in sentence.claims:
        parts += _claim(claim, is_part=len(sentence.claims) > 1)
    if sentence.not_here:
        cited = ", ".join(_text(str(each)) for each in sentence.not_here)
        parts.append(f'<p class="line">It also cites {cited}, not in the library.</p>')
    return "<article>\n" + "\n".join(parts) + "\n</article>"


def _claim(claim: CheckedClaim, *, is_part: bool) -> Iterator[str]:
    if is_part:
        yield f"<p>{_text(claim.claim)}</p>"
    if claim.reason:
        yield f"<p>{_text(sentence_of(claim.reason))}</p>"
    for quotes, lead in ((claim.citations, ""), (claim.against, "But: ")):
        yield from (_quote(quote, lead) for quote in quotes)
    if claim.verified_by:
        yield f'<p class="line">{_text(claim.verified_by)} agrees.</p>'


def _quote(quote: Citation, lead: str) -> str:
    return f"<blockquote>{lead}“{_text(quote.quote)}” <cite>{escape(quote.shown)}</cite></blockquote>"


def sentence_of(reason: str) -> str:
    """A reason as a sentence."""
    return f"{reason[:1].upper()}{reason[1:]}."


def _text(text: str) -> str:
    return escape(plain_line(text))
