"""Links to a place in a paper on Folio's page. Pure."""

from __future__ import annotations


def reader_link(page: str, paper: str, number: int, span: tuple[int, int] | None = None) -> str:
    """The address of a page of a paper: "http://127.0.0.1:8420/#paper/ID/p/7?from=10&to=20".

    page: the address of Folio's page. number: of the page, from 1. span: the words to mark, in the text of the paper.
    """
    marked = f"?from={span[0]}&to={span[1]}" if span else ""
    return f"{page}#paper/{paper}/p/{number}{marked}"
