"""Whether numbers and names belong to what a sentence says them of."""

from __future__ import annotations

import pytest

from folio.grounding.entity_binding import gives_another, unbound

TONGUE = "The tongue of the glacier retreats by 40 metres each year."
ICE = "At the Konkordiaplatz the ice has a thickness of 800 metres."
ROW, HEAD = "Gorner  12.4  53.1", "Glacier  Length (km)  Area (km2)"
ENCODER, DECODER = "The encoder has 24 layers.", "The decoder has 12 layers."


@pytest.mark.parametrize(
    ("sentence", "quote", "expected"),
    [
        ("At the Konkordiaplatz the ice has a thickness of 40 metres.", ICE, True),
        ("The tongue of the glacier retreats by 800 metres each year.", TONGUE, True),
        ("The encoder has 12 layers.", ENCODER, True),
        ("The ice at the Konkordiaplatz has a thickness of 800 metres.", ICE, False),
        ("The ice at the Konkordiaplatz has a thickness.", ICE, False),
        ("The encoder has 12 layers.", "The encoder was trained for 12 hours.", False),  # of another unit
        ("The encoder has 24 layers, and the decoder has 12 layers.", ENCODER, False),
        ("Otters float in rafts of 12 animals.", TONGUE, False),  # of something else
    ],
)
def test_gives_another(sentence: str, quote: str, expected: bool) -> None:
    assert gives_another(sentence, quote) is expected


@pytest.mark.parametrize(
    ("sentence", "quotes", "expected"),
    [
        # A number, a name, in a quote with no other word of the sentence
        ("The Gorner glacier has a length of 23.1 km.", [HEAD, "Aletsch  23.1  81.7", ROW], "23.1"),
        ("The glacier Gorner retreats by 40 metres each year.", [TONGUE, ROW, "So does the Aletsch."], "Gorner"),
        # A name that none of the quotes has, where one of them has another
        ("The method of Smith reached 95 %.", ["The method of Jones reached 95 %."], "Smith"),
        ("It was led by Martin Funk.", ["It was led by Karl Berg."], "Martin Funk"),
        # A first word that the quotes show to be a name
        ("Bob reaches 88.4 %.", ["Then Alice sent a key to Bob.", "The baseline reaches 88.4 %."], "Bob"),
        # Bound
        ("Gorner has a length of 12.4 km.", [HEAD, ROW], ""),
        ("The encoder has 24 layers, the decoder 12.", [ENCODER, DECODER], ""),
        ("The Aletsch glacier retreats by 40 metres.", ["The Aletsch glacier is long.", TONGUE], ""),
        ("FAIR is short for Findable and Accessible.", ["FAIR: Findable, Accessible.", "It is short."], ""),
        # Named by its paper's title
        ("ThermoState uses Pint.", ["The package uses Pint."], ""),
    ],
)
def test_unbound(sentence: str, quotes: list[str], expected: str) -> None:
    found = unbound(sentence, quotes, "ThermoState: states of matter", several=False)
    assert found == expected or (expected and expected in found)


def test_a_name_alone_is_enough_where_no_other_is_told_of_but_not_over_two_pieces_of_evidence() -> None:
    sentence, quotes = "The Argo network consists of 4,000 floats.", ["Argo", "The network consists of 4,000 floats."]
    assert unbound(sentence, quotes, "", several=False) == ""
    assert "Argo" in unbound(sentence, quotes, "", several=True)
