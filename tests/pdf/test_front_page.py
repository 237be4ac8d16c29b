"""Titles and authors of made first pages, set like those of journals, conferences, reports and typescripts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from folio.pdf.page_lines import FrontPage, front_page
from folio.pdf.reader import read_pdf
from tests.helpers.pdfs import Set, body, front


class Layout(NamedTuple):
    pages: list[list[Set]]
    title: str
    authors: tuple[str, ...]
    metadata: dict[str, str] | None = None


LAYOUTS = {
    "a cover with the beginning of the title in a smaller size": Layout(
        [
            [
                Set(130, "UPDATED RECOMMENDATIONS ON", 16, "helv", 60),
                Set(160, "TREATMENT OF LOOMS AND", 25, "hebo", 60),
                Set(190, "OF THEIR ENGINES", 25, "hebo", 60),
                Set(300, "Ada Lovelace", 14, "helv", 60),
            ],
            body(60),
        ],
        "UPDATED RECOMMENDATIONS ON TREATMENT OF LOOMS AND OF THEIR ENGINES",
        ("Ada Lovelace",),
    ),
    "a company below the name, set like it": Layout(
        [
            [
                Set(80, "An Algorithm for the Search of Tunes", 18, "hebo"),
                Set(110, "Ada Lovelace", 12),
                Set(124, "ada@tunesteam.com", 12),
                Set(138, "Tunes Entertainment, Ltd.", 12),
                Set(152, "2925 Ross Road", 12),
                *body(190, 2, 9, "ABSTRACT"),
            ]
        ],
        "An Algorithm for the Search of Tunes",
        ("Ada Lovelace",),
    ),
    "a company known by the domain of its e-mail, and a town below a laboratory": Layout(
        [
            [
                Set(80, "An Algorithm for the Search of Tunes", 18, "hebo"),
                Set(110, "Ada Lovelace", 12, x=80),
                Set(110, "Luigi Menabrea", 12, x=330),
                Set(124, "Turin Laboratories", 12, x=80),
                Set(124, "ada@engine.org", 12, x=330),
                Set(138, "Murray Hill, New Jersey", 12, x=80),
                Set(138, "Engine Makers", 12, x=330),
                *body(190, 2, 9, "ABSTRACT"),
            ]
        ],
        "An Algorithm for the Search of Tunes",
        ("Ada Lovelace", "Luigi Menabrea"),
    ),
    "two rows of names that overlap across columns": Layout(
        [
            [
                Set(80, "Checking Claims about Looms by Programs", 16, "tibo"),
                Set(106, "Ada Lovelace^{1}", 12, x=130),
                Set(106, "Luigi Menabrea^{2}", 12, x=300),
                Set(120, "Charles Babbage^{1}", 12, x=200),
                Set(120, "Mary Somerville^{3}", 12, x=370),
                Set(136, "^{1}Analytical Society  ^{2}Torino  ^{3}Jedburgh", 9),
                *body(180, 2, 10, "Abstract"),
            ]
        ],
        "Checking Claims about Looms by Programs",
        ("Ada Lovelace", "Luigi Menabrea", "Charles Babbage", "Mary Somerville"),
    ),
    "columns of authors with affiliations and addresses": Layout(
        [
            [
                Set(80, "Weaving Patterns on Distributed Looms", 18, "hebo"),
                Set(110, "Ada Lovelace", 12, x=80),
                Set(110, "Luigi Menabrea", 12, x=260),
                Set(110, "Mary Somerville", 12, x=430),
                Set(124, "Analytical Society", 10, x=80),
                Set(124, "Turin Academy", 10, x=260),
                Set(124, "Jedburgh House", 10, x=430),
                Set(136, "ada@engine.org", 9, x=80),
                Set(136, "luigi@to.it", 9, x=260),
                Set(136, "mary@som.uk", 9, x=430),
                Set(160, "Charles Babbage", 12, x=170),
                Set(160, "Augustus De Morgan", 12, x=340),
                Set(174, "Dorset Street", 10, x=170),
                Set(174, "London", 10, x=340),
                *body(200, 2, 9, "ABSTRACT"),
            ]
        ],
        "Weaving Patterns on Distributed Looms",
        ("Ada Lovelace", "Luigi Menabrea", "Mary Somerville", "Charles Babbage", "Augustus De Morgan"),
    ),
    "a journal with its banner, letters as marks": Layout(
        [
            [
                Set(40, "Journal of Computing Machinery 42 (1990) 335-346", 9),
                Set(60, "Contents lists available at ScienceDirect", 8),
                Set(85, "Journal of Computing Machinery", 16, "tiit"),
                Set(130, "On the numbers of Bernoulli and the engines that find them", 15),
                Set(160, "Ada Lovelace ^{a,*}, Luigi Menabrea ^{b}, Mary Somerville ^{a,b}", 12),
                Set(176, "^{a} Analytical Society, London, England", 8, "tiit"),
                Set(188, "^{b} Accademia delle Scienze, Torino", 8, "tiit"),
                *body(215, 1, 10, "Abstract"),
            ]
        ],
        "On the numbers of Bernoulli and the engines that find them",
        ("Ada Lovelace", "Luigi Menabrea", "Mary Somerville"),
    ),
    "memberships between the names": Layout(
        [
            [
                Set(40, "IEEE TRANSACTIONS ON LOOMS, VOL. 3, NO. 2, MARCH 1988", 7, x=60),
                Set(40, "101", 7, x=530),
                Set(80, "A Note on Punched Cards", 22),
                Set(110, "Ada Lovelace, Member, IEEE, and Charles Babbage, Senior Member, IEEE", 11),
                *body(150, 2, 9, "Abstract"),
            ]
        ],
        "A Note on Punched Cards",
        ("Ada Lovelace", "Charles Babbage"),
    ),
    "a typescript in one size of type": Layout(
        [
            [
                Set(90, "A THEORY OF ANALYTICAL ENGINES", 11, "cour"),
                Set(120, "by", 11, "cour"),
                Set(145, "Ada K. Lovelace", 11, "cour"),
                Set(160, "Analytical Society", 11, "cour"),
                Set(175, "London, England", 11, "cour"),
                Set(205, "June 1843", 11, "cour"),
                *[line._replace(font="cour") for line in body(260, 1, 11)],
            ]
        ],
        "A THEORY OF ANALYTICAL ENGINES",
        ("Ada K. Lovelace",),
    ),
    "names in two lines without a comma between them": Layout(
        [
            [
                Set(80, "Carrying Ahead in Decimal Columns", 17, "tibo"),
                Set(105, "Ada Lovelace, Luigi Menabrea, Mary Somerville", 12),
                Set(120, "Charles Babbage, Sophia Frend", 12),
                Set(138, "Analytical Society, London", 12, "tiit"),
                *body(180, 2, 10, "Abstract"),
            ]
        ],
        "Carrying Ahead in Decimal Columns",
        ("Ada Lovelace", "Luigi Menabrea", "Mary Somerville", "Charles Babbage", "Sophia Frend"),
    ),
    "a name broken at the end of a line": Layout(
        [
            [
                Set(80, "Carrying Ahead in Decimal Columns", 17, "tibo"),
                Set(105, "Ada Lovelace^{1}, Luigi Menabrea^{2}, Mary", 12),
                Set(120, "Somerville^{1}, and Charles Babbage^{1,2}", 12),
                Set(138, "^{1}Analytical Society  ^{2}Torino", 9),
                *body(180, 2, 10, "Abstract"),
            ]
        ],
        "Carrying Ahead in Decimal Columns",
        ("Ada Lovelace", "Luigi Menabrea", "Mary Somerville", "Charles Babbage"),
    ),
    "capitals, and accents drawn on their own": Layout(
        [
            [
                Set(80, "THE STORE AND THE MILL", 14, "tibo"),
                Set(108, "KURT G¨ODEL AND R´EMI MAC LANE", 10),
                Set(140, "Abstract. We describe the store and the mill of an engine.", 9),
                *body(155, 1, 10),
            ]
        ],
        "THE STORE AND THE MILL",
        ("Kurt Gödel", "Rémi Mac Lane"),
    ),
    "a running head above the title": Layout(
        [
            [
                Set(30, "LOVELACE ET AL.", 8, x=60),
                Set(30, "Engines and Their Operations", 8, x=250),
                Set(30, "1", 8, x=540),
                Set(80, "Engines and Their Operations", 16, "hebo"),
                Set(105, "A.A. Lovelace, L.F. Menabrea and C. Babbage^{*}", 13, "hebo"),
                Set(125, "Analytical Society", 13, "hebo"),
                *body(170, 1, 10, "Introduction"),
            ]
        ],
        "Engines and Their Operations",
        ("A.A. Lovelace", "L.F. Menabrea", "C. Babbage"),
    ),
    "a report's cover in front of the paper": Layout(
        [
            [
                Set(90, "BRIXX", 60, "tibo", 60),
                Set(120, "Basic Research in Engines", 16, x=60),
                Set(250, "Engines Without Wheels", 20),
                Set(290, "Ada Lovelace", 14),
                Set(310, "Luigi Menabrea", 14),
                Set(600, "BRIXX Report Series RS-96-41", 10),
                Set(615, "ISSN 0909-0878    December 1996", 10),
            ],
            [
                Set(100, "Copyright © 1996, BRIXX, University of Aarhus. All rights reserved.", 10),
                Set(120, "Reproduction of all or part of this work is permitted for educational or research use", 10),
            ],
            [
                Set(90, "Engines Without Wheels", 17),
                Set(120, "Ada Lovelace      Luigi Menabrea", 12),
                Set(135, "University of Aarhus", 10),
                *body(170, 1, 10, "Abstract"),
            ],
        ],
        "Engines Without Wheels",
        ("Ada Lovelace", "Luigi Menabrea"),
    ),
    "a library's cover sheet": Layout(
        [
            [
                Set(
                    60,
                    "See discussions, stats, and author profiles for this publication at: https://www.network.net/publication/2",
                    9,
                    x=40,
                ),
                Set(110, "Engines Without Wheels", 18, "hebo", 40),
                Set(130, "Article in Annals of Engines - January 2005", 10, x=40),
                Set(200, "3 authors, including:", 12, x=40),
                Set(230, "Some Reader", 12, x=60),
                Set(500, "All content following this page was uploaded by Some Reader on 14 May 2014.", 8, x=40),
            ],
            [
                Set(90, "Engines Without Wheels", 17),
                Set(120, "Ada Lovelace, Luigi Menabrea", 12),
                *body(170, 1, 10, "Abstract"),
            ],
        ],
        "Engines Without Wheels",
        ("Ada Lovelace", "Luigi Menabrea"),
    ),
    "a thesis": Layout(
        [
            [
                Set(120, "Purely Mechanical Functions", 24, "tibo"),
                Set(200, "Ada Lovelace", 14),
                Set(230, "September 1996", 12),
                Set(250, "AS-96-177", 12),
                Set(300, "School of Engines", 12),
                Set(315, "Analytical University", 12),
                Set(400, "Submitted in partial fulfillment of the requirements", 10),
                Set(412, "for the degree of Doctor of Philosophy.", 10),
                Set(450, "Thesis Committee:", 11, "tibo"),
                Set(465, "Charles Babbage, Chair", 11),
                Set(480, "Mary Somerville", 11),
            ]
        ],
        "Purely Mechanical Functions",
        ("Ada Lovelace",),
    ),
    "metadata of a template": Layout(
        [[Set(80, "Looms that Learn", 18, "hebo"), Set(105, "Ada Lovelace", 12), *body(150, 2, 9, "ABSTRACT")]],
        "Looms that Learn",
        ("Ada Lovelace",),
        {"title": "Proceedings Template - WORD", "author": "Language"},
    ),
    "metadata with the name of a file and one of two authors": Layout(
        [
            [
                Set(80, "Looms that Learn", 18, "hebo"),
                Set(105, "Ada Lovelace and Charles Babbage", 12),
                *body(150, 2, 9, "ABSTRACT"),
            ]
        ],
        "Looms that Learn",
        ("Ada Lovelace", "Charles Babbage"),
        {"title": "Microsoft Word - looms_v3.doc", "author": "Ada Lovelace"},
    ),
    "a stamp across the top": Layout(
        [
            [
                Set(30, "arXiv:2301.01234v2  [cs.CL]  3 Jan 2023", 20, x=60),
                Set(90, "Looms that learn to weave", 16),
                Set(115, "Ada Lovelace*   Charles Babbage*", 12),
                *body(150, 1, 10, "Abstract"),
            ]
        ],
        "Looms that learn to weave",
        ("Ada Lovelace", "Charles Babbage"),
    ),
    "a title in three lines with a subtitle": Layout(
        [
            [
                Set(80, "Looms that Learn:", 18, "hebo"),
                Set(101, "Patterns, Cards, and the", 18, "hebo"),
                Set(122, "Operations of Engines", 18, "hebo"),
                Set(150, "Ada Lovelace", 12),
                Set(164, "Analytical Society", 10),
                *body(200, 2, 9, "Abstract"),
            ]
        ],
        "Looms that Learn: Patterns, Cards, and the Operations of Engines",
        ("Ada Lovelace",),
    ),
    "names of one word in their first part, middle dots between": Layout(
        [
            [
                Set(80, "Chapter and Verse of Weaving", 16, "tibo", 72),
                Set(110, "Robbert van Renesse · Jean-Luc O'Hara · Yee Jiun Song", 11, x=72),
                Set(130, "Received: 3 May 2004 / Accepted: 5 June 2005", 8, x=72),
                *body(160, 1, 10, "Abstract"),
            ]
        ],
        "Chapter and Verse of Weaving",
        ("Robbert van Renesse", "Jean-Luc O'Hara", "Yee Jiun Song"),
    ),
    "names and affiliations in turn": Layout(
        [
            [
                Set(80, "Snapshots of Engines: Determining", 18, "helv", 72),
                Set(101, "States of Engines", 18, "helv", 72),
                Set(130, "K. MANI LOVELACE", 9, "helv", 72),
                Set(142, "University of Engines at Austin", 9, "helv", 72),
                Set(154, "and", 9, "helv", 72),
                Set(166, "LESLIE BABBAGE", 9, "helv", 72),
                Set(178, "Stanford Research Institute", 9, "helv", 72),
                *body(210, 1, 9),
            ]
        ],
        "Snapshots of Engines: Determining States of Engines",
        ("K. Mani Lovelace", "Leslie Babbage"),
    ),
    "a title in bold type of the text's size": Layout(
        [
            [
                Set(80, "How We Learned to Weave Numbers", 11, "tibo"),
                Set(100, "Ada Lovelace and Luigi Menabrea", 11),
                Set(114, "Analytical Society, London", 11, "tiit"),
                *body(160, 1, 11, "1 Introduction"),
            ]
        ],
        "How We Learned to Weave Numbers",
        ("Ada Lovelace", "Luigi Menabrea"),
    ),
    "an address in the line of the name": Layout(
        [
            [
                Set(80, "Why Mechanical Computing Matters", 17),
                Set(110, "John Babbage, Institutionen f¨or Datavetenskap,", 12),
                Set(124, "Chalmers Tekniska H¨ogskola,", 12),
                Set(138, "41296 G¨oteborg,", 12),
                Set(152, "SWEDEN. jb@chalmers.se", 12),
                Set(190, "This paper dates from 1984, and circulated as a memo for many years.", 10),
                *body(220, 1, 10, "Abstract"),
            ]
        ],
        "Why Mechanical Computing Matters",
        ("John Babbage",),
    ),
    "a kind of article above the title, dates and notices below": Layout(
        [
            [
                Set(50, "RESEARCH ARTICLE", 20, "hebo", 72),
                Set(85, "Weaving improves the recall of numbers in looms", 17, "hebo", 72),
                Set(110, "Ada Lovelace^{1}*, Luigi Menabrea^{2}, Mary Somerville^{1,2}", 11, "hebo", 72),
                Set(130, "^{1} Department of Engines, Analytical University, London, United Kingdom,", 8, x=72),
                Set(142, "^{2} Torino Academy, Torino, Italy", 8, x=72),
                Set(156, "* ada@engine.org", 8, x=72),
                *body(190, 1, 10, "Abstract"),
            ]
        ],
        "Weaving improves the recall of numbers in looms",
        ("Ada Lovelace", "Luigi Menabrea", "Mary Somerville"),
    ),
    "a magazine with the author under a byline": Layout(
        [
            [
                Set(40, "practice", 12, "tiit", 60),
                Set(100, "The Loom Is the Computer", 36, "hebo", 60),
                Set(130, "Programs were woven long before they were typed.", 14, "tiit", 60),
                Set(155, "BY ADA LOVELACE AND LUIGI MENABREA", 11, "hebo", 60),
                *body(200, 2, 9),
            ]
        ],
        "The Loom Is the Computer",
        ("Ada Lovelace", "Luigi Menabrea"),
    ),
    "spaced letters and an acronym in the banner": Layout(
        [
            [
                Set(40, "A C M   S I G L O O M", 10),
                Set(80, "SIGLOOM", 9),
                Set(110, "Cards that Count", 16, "hebo"),
                Set(135, "Ada Lovelace   Mary Somerville", 12),
                Set(150, "{ada,mary}@engine.org", 10, "cour"),
                *body(190, 2, 9, "A B S T R A C T"),
            ]
        ],
        "Cards that Count",
        ("Ada Lovelace", "Mary Somerville"),
    ),
    "no title on the page: headings of sections are none": Layout(
        [[*body(60, 2, 9), Set(400, "System Model", 12, "tibo", 330)]],
        "",
        (),
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    parsed = read_pdf(front(tmp_path / "a.pdf", layout.pages, layout.metadata))
    assert (parsed.title, parsed.authors) == (layout.title, layout.authors)


def test_a_page_without_a_size_has_one() -> None:
    assert front_page([], 0.0, 0.0) == FrontPage((), 1.0, 1.0)
