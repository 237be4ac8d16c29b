from __future__ import annotations

import pytest

from folio.zotero.link import checked, open_page, open_pdf

pytestmark = pytest.mark.fast


def test_links_of_the_users_library_and_of_groups() -> None:
    assert open_pdf("library/items/ABCD2345") == "zotero://open-pdf/library/items/ABCD2345"
    assert open_page("library/items/ABCD2345", 7) == "zotero://open-pdf/library/items/ABCD2345?page=7"
    assert open_page("groups/12/items/ABCD2345", 1) == "zotero://open-pdf/groups/12/items/ABCD2345?page=1"


@pytest.mark.parametrize(
    "item",
    [
        "", "library/items/", "library/items/abcd2345", "library/items/ABCD23456", "groups/0/items/ABCD2345",
        "groups/x/items/ABCD2345", "library/items/ABCD2345?page=1", "library/items/ABCD2345\n",
        "library/items/ABCD234É",
        'library/items/"><b>abc', "../library/items/ABCD2345", "None/items/ABCD2345", "groups/١٢/items/ABCD2345",
    ],
)  # fmt: skip
def test_nothing_else_becomes_a_link(item: str) -> None:
    assert open_pdf(item) == ""
    assert open_page(item, 3) == ""


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)", "https://example.org/", "zotero://select/library/items/ABCD2345",
        "zotero://open-pdf/library/items/ABCD2345", "zotero://open-pdf/library/items/ABCD2345?page=0",
        "zotero://open-pdf/library/items/ABCD2345?page=1)[x](y", " zotero://open-pdf/library/items/ABCD2345?page=1",
    ],
)  # fmt: skip
def test_only_links_to_pages_pass(link: str) -> None:
    assert checked(link) == ""
