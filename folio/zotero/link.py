"""Links into Zotero: a PDF attachment opened at a page. Pure.

Zotero's form is zotero://open-pdf/library/items/KEY?page=N, or zotero://open-pdf/groups/ID/items/KEY for groups. Folio
shows only links of this form, built here.
"""

from __future__ import annotations

import re

# A key has eight letters and digits.
_KEY = r"[A-Z0-9]{8}"
_ITEM = re.compile(rf"(?:library|groups/[1-9][0-9]{{0,9}})/items/{_KEY}")
_LINK = re.compile(rf"zotero://open-pdf/{_ITEM.pattern}\?page=[1-9][0-9]{{0,6}}")
_IS_KEY = re.compile(_KEY)


def is_key(text: str) -> bool:
    """Whether a text has the form of a Zotero key."""
    return bool(_IS_KEY.fullmatch(text))


def is_item(text: str) -> bool:
    """Whether a text names an attachment: "library/items/KEY", "groups/12/items/KEY"."""
    return bool(_ITEM.fullmatch(text))


def open_pdf(item: str) -> str:
    """The link that opens an attachment; "" if `item` does not name one."""
    return f"zotero://open-pdf/{item}" if is_item(item) else ""


def open_page(item: str, page: int) -> str:
    """The link that opens an attachment at a physical page, from 1; "" if `item` does not name one."""
    return checked(f"{open_pdf(item)}?page={page}")


def checked(link: str) -> str:
    """The link if it opens a page of an attachment in Zotero, else ""."""
    return link if _LINK.fullmatch(link) else ""
