"""Numbers of a table: each belongs to its row and its column."""

from __future__ import annotations

import pytest

from folio.grounding.grounder import attribute, misplaced
from folio.grounding.sentences import number_sentences
from tests.helpers.factories import evidence_on

GLACIERS = """Glaciers differ. The longest has 86.6 km2.

Glacier  Length (km)  Area (km2)
Aletsch  23.1  81.7
Gorner  12.4  53.1
Rhone  7.9  15.9
"""
FILES = "Name  Size  Files  Average Size\nLout  76 MiB  5,853  13 KiB\nOgg Vorbis files  32 MiB  10  3 MiB"
CORNER = "The gains.\n\nMay  August\nRoof hives  14  3\nCourt hives  9  2"

BUILT = "Built.\n\nSaltness  1890  1902\nEllis  1905  1922\nWick  1931  1944"
CATCHES = "Catches differ.\n\nStation  2019  2020\nEllis  14.2  31.7\nSaltness  9.1  8.4\nWick  7.7"
SAMPLES = "Samples differ.\n\nStation  Week 1  Treated (n = 12)\nEllis  14.2  31.7\nWick  7.7  6.4"


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
        ("Ellis had a catch of 31.7 in 2019.", CATCHES, "31.7"),
        ("In 2019, Ellis had a catch of 31.7.", CATCHES, "31.7"),
        ("Ellis had a catch of 31.7 in 2019 and of 14.2 in 2020.", CATCHES, "31.7"),
        ("Ellis had a catch of 9.1 in 2019.", CATCHES, "9.1"),
        ("Ellis had a catch of 7.7 in 2019.", CATCHES, "7.7"),  # the row with an open cell has it
        ("Ellis had 31.7 in week 1.", SAMPLES, "31.7"),
        ("Of the treated, Ellis had 14.2.", SAMPLES, "14.2"),
        ("The Aletsch has a length of 53.1 km.", GLACIERS.replace("Rhone  7.9", "Rhone"), "53.1"),
        ("The Gorner glacier has a length of 53.1 km.", GLACIERS.replace("\nGorner", "\n\nGorner"), "53.1"),
        ("The Gorner glacier has a length of 53.1 km.", GLACIERS.replace("\nAletsch", "\n\nAletsch"), "53.1"),
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
        # Two tables, of which the second has a head of its own
        ("The Gorner has 1200 plots.", f"{GLACIERS}\nGlacier  Plots  Counts\nGorner  1200  12.4"),
        ("Gorner is 53.1 long.", GLACIERS.replace("Length (km)", "12")),  # this may be no header
        ("Ellis had a catch of 14.2 in 2019 and of 31.7 in 2020.", CATCHES),
        ("Ellis had catches of 14.2 and 31.7 in 2019 and 2020.", CATCHES),
        ("In 2019 and 2020, Ellis had catches of 14.2 and 31.7.", CATCHES),
        ("Wick had a catch of 7.7 in 2020.", CATCHES),  # a cell is open, and which one is not known
        ("Ellis had 14.2 in week 1, and 31.7 were treated.", SAMPLES),
        ("Ellis was built in 1905 and Wick in 1931.", BUILT),
        ("Gorner is 53.1 long.", GLACIERS.replace("Gorner  12.4", "Gorner")),  # a cell is missing, and which is open
    ],
)
def test_a_number_in_its_place_or_in_an_unknown_one(statement: str, text: str) -> None:
    assert moved(statement, text) == ""
