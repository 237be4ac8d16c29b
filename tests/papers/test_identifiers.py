"""Identifiers and links as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folio.errors import UsageError
from folio.papers.identifiers import parse_identifier

pytestmark = pytest.mark.fast

S2 = "204e3073870fae3d05bcbc2f6a8e263d9b72e776"


OLD = "10.1002/(SICI)1097-4571(199009)41:6<391::AID-ASI1>3.0.CO;2-9"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("2312.10997", "arxiv", "2312.10997"),
        (" arXiv:2312.10997v5 ", "arxiv", "2312.10997v5"),
        ("hep-th/9901001", "arxiv", "hep-th/9901001"),
        ("math.GT/0309136v2", "arxiv", "math.GT/0309136v2"),
        ("https://arxiv.org/abs/1706.03762v5", "arxiv", "1706.03762v5"),
        ("http://www.arxiv.org/pdf/1706.03762.pdf", "arxiv", "1706.03762"),
        ("https://export.arxiv.org/abs/hep-th/9901001?context=x#y", "arxiv", "hep-th/9901001"),
        ("10.48550/arXiv.2312.07559", "arxiv", "2312.07559"),
        ("10.1145/3292500.3330701", "doi", "10.1145/3292500.3330701"),
        ("doi: 10.1023/A:1007154515475.", "doi", "10.1023/a:1007154515475"),
        ("https://doi.org/10.1016%2Fj.addr.2015.01.008", "doi", "10.1016/j.addr.2015.01.008"),
        ("http://dx.doi.org/10.1002/(SICI)1097", "doi", "10.1002/(sici)1097"),
        (OLD, "doi", OLD.casefold()),
        (f"https://doi.org/{OLD}", "doi", OLD.casefold()),
        ("10.1175/1520-0442(1994)007<0929:TNAOAO>2.0.CO;2", "doi", "10.1175/1520-0442(1994)007<0929:tnaoao>2.0.co;2"),
        ("https://openalex.org/W4389761608", "openalex", "W4389761608"),
        ("https://openalex.org/works/w4389761608", "openalex", "W4389761608"),
        ("w4389761608", "openalex", "W4389761608"),
        (f"https://www.semanticscholar.org/paper/Attention-is-All/{S2.upper()}", "semanticscholar", S2),
        (S2, "semanticscholar", S2),
        ("CorpusID:13756489", "semanticscholar", "CorpusId:13756489"),
    ],
)
def test_an_identifier_is_known(text: str, kind: str, value: str) -> None:
    found = parse_identifier(text)
    assert (found.kind, found.value) == (kind, value)


@pytest.mark.parametrize(
    "text",
    ["", "dense retrieval", "2313.10997", "2312.1", "10.1/x", "W0", "W", "https://example.org/2312.10997", "12", "[]",
     "https://arxiv.org/list/cs.CL", "https://[", "2312.10997,2401.1", "10.1145/x y",
     "10.1145/<b>x</b>", "10.1145/x\u202ey", "10.1145/" + "ß" * 300, "a" * 600, "../../etc/passwd"],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no identifier that Folio knows"):
        parse_identifier(text)


@settings(max_examples=40)
@given(st.one_of(st.text(max_size=60), st.from_regex(r"https?://[a-z.\[\]:/%0-9]{0,40}")))
def test_no_text_breaks_it(text: str) -> None:
    try:
        found = parse_identifier(text)
    except UsageError:
        return
    assert found.value
    assert parse_identifier(found.value).kind == found.kind
