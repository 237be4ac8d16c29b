"""Loose accents are put on their letters, whichever of the two was drawn first."""

from __future__ import annotations

import pytest

from folio.ingest.cleaning import clean
from folio.pdf.accents import compose_accents
from folio.pdf.reader import read_pdf
from folio.text import tokenize
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("loose", "composed"),
    [
        ("Schr¨odinger, the Poincar´e map of M¨uller, Canc`es", "Schrödinger, the Poincaré map of Müller, Cancès"),
        ("Schro¨dinger, Mu¨ller, Poincare´, He´le`ne, Noe¨l", "Schrödinger, Müller, Poincaré, Hélène, Noël"),
        ("M ¨uller, Schr¨ odinger, by ¨Oz: na¨ıve", "Müller, Schrödinger, by Öz: naïve"),
        ("the ´etude of the ´etude, and then the rest", "the étude of the étude, and then the rest"),
        ("Haˇsek, Dvoˇr´ak, Nov´ak and Novotn´y", "Hašek, Dvořák, Novák and Novotný"),
        ("Pe´rez", "Pérez"),
        ("Gonc¸alves, Fran¸cois", "Gonçalves, François"),
        ("Wa´sniewski, Fern´andez, Gonz´alez, Novotn´y", "Waśniewski, Fernández, González, Novotný"),
        # Neither accents nor letters that carry one
        ("don´t, it´s, ``word'' and `else`, x `y, a ~ b, 2^n", None),
        ("the mean ¯x_i of x", None),
        ("Already Schrödinger", None),
    ],
)
def test_accents(loose: str, composed: str | None) -> None:
    assert compose_accents([loose]) == [composed or loose]


def test_the_order_of_the_paper_decides_where_both_letters_could_carry_it() -> None:
    certain = "Mu¨ller, Poincare´, Bjo¨rk and Scho¨n"
    assert compose_accents([certain, "cre´ation"])[1] == "création"
    assert compose_accents(["M¨uller, L´evy, Bj¨ork and Sch¨on", "cre´ation"])[1] == "creátion"


def test_a_page_is_found_with_and_without_accents() -> None:
    text = clean(read_pdf(ROOT / "tests" / "data" / "cases" / "accents" / "before.pdf").pages)[0]
    assert "The Schrödinger equation was solved with the Poincaré map of Müller and Cancès." in text
    assert tokenize("Schrödinger Poincaré") == tokenize("Schrodinger Poincare")
