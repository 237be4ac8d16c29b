"""Numbers of a table: each belongs to its row and its column."""

from __future__ import annotations

import pytest

from folio.grounding.attribution import attribute
from folio.grounding.sentences import number_sentences
from folio.grounding.table_cells import misplaced
from tests.helpers.factories import evidence_on

GLACIERS = """Glaciers differ. The longest has 86.6 km2.

Glacier  Length (km)  Area (km2)
Aletsch  23.1  81.7
Gorner  12.4  53.1
Rhone  7.9  15.9
"""
FILES = "Name  Size  Files  Average Size\nLout  76 MiB  5,853  13 KiB\nOgg Vorbis files  32 MiB  10  3 MiB"
CORNER = "The gains.\n\nMay  August\nRoof hives  14  3\nCourt hives  9  2"


def moved(statement: str, text: str) -> str:
    """The number that a statement gives for another cell; "" for none."""
    sentences = number_sentences(evidence_on(text))
    found = misplaced(statement, attribute(statement, sentences, sentences))
    return found.written if found else ""


@pytest.mark.parametrize(
    ("statement", "text", "number"),
    [
        ("The Gorner glacier has a length of 53.1 km.", GLACIERS, "53.1"),  # another column's
        ("The Gorner glacier has a length of 23.1 km.", GLACIERS, "23.1"),  # another row's
        ("The Gorner is 23.1 km long, the Aletsch 12.4 km.", GLACIERS, "23.1"),
        ("Glacier: Gorner; Length (km): 53.1; Area (km2): 12.4", GLACIERS, "53.1"),
        ("The Ogg Vorbis files have 76 MiB.", FILES, "76"),
        ("Roof hives: 14 in August and 3 in May", CORNER, "14"),  # the row of names begins with no corner cell
    ],
)
def test_a_number_of_another_row_or_column(statement: str, text: str, number: str) -> None:
    assert moved(statement, text) == number


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("The Gorner glacier has a length of 12.4 km.", GLACIERS),
        ("The Gorner is 12.4 km long, the Aletsch 23.1 km.", GLACIERS),
        ("The lengths of Aletsch and Gorner are 23.1 and 12.4 km.", GLACIERS),  # which is whose is not told
        ("Glacier: Gorner; Length (km): 12.4; Area (km2): 53.1", GLACIERS),
        ("Gorner: 12.4", GLACIERS),
        ("With 81.7 km2, the Aletsch glacier is the largest.", GLACIERS),
        (
            "The Aletsch glacier, with an area of 81.7 km2, is nearly as large as that of 86.6 km2.",
            GLACIERS,
        ),  # in prose
        ("The Ogg Vorbis file set is 32 MiB in size.", FILES),  # "size" and "file" name several things there
        ("Roof hives: 14 in May and 3 in August", CORNER),
        ("Gorner is 53.1 long.", GLACIERS.replace("Length (km)", "12")),  # a header has no numbers
        ("Gorner is 53.1 long.", GLACIERS.replace("Gorner  12.4", "Gorner")),  # a cell is missing, and which is open
    ],
)
def test_a_number_where_it_belongs_or_where_nobody_can_tell(statement: str, text: str) -> None:
    assert moved(statement, text) == ""
