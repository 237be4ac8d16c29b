"""Names of people: told from affiliations, split into given and family name."""

from __future__ import annotations

import pytest

from folio.papers.metadata import PersonName
from folio.papers.people import split_name
from folio.pdf.accents import compose_accents
from folio.pdf.names import MARK, clean_name, common_words, join_lines, names_in

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Ada Lovelace", ["Ada Lovelace"]),
        ("Ada Lovelace, Charles Babbage and Luigi Menabrea", ["Ada Lovelace", "Charles Babbage", "Luigi Menabrea"]),
        ("Ada Lovelace & Charles Babbage", ["Ada Lovelace", "Charles Babbage"]),
        (f"Ada Lovelace{MARK}, Charles Babbage{MARK}", ["Ada Lovelace", "Charles Babbage"]),
        (f"Ada Lovelace{MARK} Charles Babbage{MARK}", ["Ada Lovelace", "Charles Babbage"]),
        ("Ada Lovelace   Charles Babbage", ["Ada Lovelace", "Charles Babbage"]),
        ("Ada Lovelace∗†, J.H. Saltzer‡", ["Ada Lovelace", "J.H. Saltzer"]),
        ("David Peleg t", ["David Peleg"]),  # OCR of a dagger
        ("ADA LOVELACE AND SOPHIA MCDONALD", ["Ada Lovelace", "Sophia McDonald"]),
        ("By G. A. LEBOUR, M.A., F.G.S.", ["G. A. Lebour"]),
        ("Matthew R. Kuhn, Member, ASCE", ["Matthew R. Kuhn"]),
        ("Ada Lovelace (ada@engine.org), Karl Brandt <karl@engine.org>", ["Ada Lovelace", "Karl Brandt"]),
        ("A. M. TURING. [Received 28 May, 1936.]", ["A. M. Turing"]),
        ("by Prof. Ada Lovelace, PhD, Fellow, IEEE", ["Ada Lovelace"]),
        ("Ada Lovelace, Analytical Society, London", ["Ada Lovelace"]),
        ("Robbert van Renesse; Marcos K. Aguilera", ["Robbert van Renesse", "Marcos K. Aguilera"]),
        ("王小明, 李华", ["王小明", "李华"]),
        ("Department of Computer Science", []),
        ("Cornell University", []),
        ("IBM Beaverton", []),
        ("Trolltech, a Nokia company", []),
        ("Palo Alto, California", []),
        ("June 1988", []),
        ("ada@engine.org", []),
        ("Distributed Systems", []),
        ("Language", []),
        ("", []),
    ],
)
def test_names_in_a_line(line: str, found: list[str]) -> None:
    assert names_in(line) == found


@pytest.mark.parametrize(
    ("name", "given", "family"),
    [
        ("Ada Lovelace", "Ada", "Lovelace"),
        ("Robbert van Renesse", "Robbert", "van Renesse"),
        ("Wil van der Aalst", "Wil", "van der Aalst"),
        ("Bernard Marius ’t Hart", "Bernard Marius", "’t Hart"),
        ("Van Jacobson", "Van", "Jacobson"),
        ("Roberto Di Cosmo", "Roberto", "Di Cosmo"),
        ("Di Cosmo, Roberto", "Roberto", "Di Cosmo"),
        ("Martin Luther King Jr.", "Martin Luther", "King Jr."),
        ("J.H. Saltzer", "J.H.", "Saltzer"),
        ("Jaime A. Prudencio-Vázquez", "Jaime A.", "Prudencio-Vázquez"),
        ("Plato", "", "Plato"),
    ],
)
def test_given_and_family_name(name: str, given: str, family: str) -> None:
    assert split_name(name) == PersonName(family, given)


def test_a_name_is_shown_given_name_first() -> None:
    assert str(PersonName("van Renesse", "Robbert")) == "Robbert van Renesse"
    assert str(PersonName("ReScience Editors")) == "ReScience Editors"
    assert clean_name("JEAN-LUC VAN DER BERG*") == "Jean-Luc van der Berg"


@pytest.mark.parametrize(
    ("text", "composed"),
    [
        ("Emin G¨un Sirer", "Emin Gün Sirer"),
        ("Deniz Altınb¨uken", "Deniz Altınbüken"),
        ("¨Ozalp Babao˘glu", "Özalp Babaoğlu"),
        ("L´aszl´o Szekeres", "László Szekeres"),
        ("Jos´e Gonc¸alves", "José Gonçalves"),
        ("G ¨odel", "Gödel"),
        ("a plain line with `quotes'", "a plain line with `quotes'"),
        ("5˜km", "5˜km"),
    ],
)
def test_loose_accents_are_put_on_their_letters(text: str, composed: str) -> None:
    assert compose_accents([text]) == [composed]


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["Ada Lovelace, Charles", "Babbage"], "Ada Lovelace, Charles Babbage"),
        (["Ada Lovelace, Charles Babbage", "Luigi Menabrea"], "Ada Lovelace, Charles Babbage, Luigi Menabrea"),
        (["Ada Lovelace,", "Charles Babbage"], "Ada Lovelace, Charles Babbage"),
        (["Ada Lovelace", "Trolltech"], "Ada Lovelace, Trolltech"),
        (["Ana Cristina Franco da", "Silva"], "Ana Cristina Franco da Silva"),
        (["Mira Voss, Ana Franco da", "Silva Costa"], "Mira Voss, Ana Franco da Silva Costa"),
    ],
)
def test_lines_of_a_list_are_joined(lines: list[str], joined: str) -> None:
    assert join_lines(lines) == joined


def test_words_that_the_paper_writes_small_are_no_names() -> None:
    common = common_words(
        "We hide both the sender and the recipient with unconditional secrecy.\n"
        "Write to lovelace at the mill of engine.org when you have read all this"
    )
    assert {"sender", "recipient", "unconditional"} <= common
    assert "lovelace" not in common  # a line with an address
    assert names_in("Unconditional Sender and Recipient Secrecy", common) == []
    assert names_in("Unconditional Sender and Recipient Secrecy") != []
    assert names_in("Ada Read and Luigi Menabrea", common) == ["Ada Read", "Luigi Menabrea"]
