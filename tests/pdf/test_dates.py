"""The year of a paper: what is printed counts for more than the dates of files."""

from __future__ import annotations

import pytest

from folio.papers.metadata import Field
from folio.pdf.dates import find_year

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("text", "year", "sure"),
    [
        ("Published 22 May 2019", 2019, True),
        ("Published\nDecember 9, 2019", 2019, True),
        ("Received September 5, 2018\nPublished\nDecember 9, 2019", 2019, True),
        ("978-1-4244-9233-6/11/$26.00 ©2011 IEEE", 2011, True),
        ("preprint doi: 10.9999/1; this version posted May 4, 2020. The copyright holder", 2020, True),
        ("Posted: 4 May 2020", 2020, True),
        ("0 1985 ACM 0734-2071/85/0200-0063", 1985, True),  # OCR of the sign of copyright
        ("CH2925-6/90/0000/05031 CQ 1990 IEEE", 1990, True),
        ("ACM Transactions on Computer Systems, Vol. 3, No. 1, February 1985, Pages 63-75.", 1985, True),
        ("STOC’10, June 5–8, 2010, Cambridge, Massachusetts, USA.", 2010, True),
        ("NDSS ’14, 23-26 February 2014, San Diego, CA, USA", 2014, True),
        ("2013 USENIX Annual Technical Conference (USENIX ATC ’13)  49", 2013, True),
        ("Journal of Engines 42 (1990) 335-346", 1990, True),
        ("June 19, 2008", 2008, True),
        ("0001-0782/78/0700-0558 $00.75", 1978, True),  # the code of a copyright
        ("Autumn 1987", 1987, True),
        ("7 de novembro de 2019", 2019, True),
        ("10 aprile 2014", 2014, True),
        ("2019/04/15 0.5.5", 2019, True),
        ("Released 2012-02-08", 2012, True),
        ("Version 0.1—January 1, 2023", 2023, True),
        ("November 26, 2020 – Version 2.3.0", 2020, True),
        ("2008", 2008, False),
        ("August 19th, 2012", 2012, True),
        ("January 1993", 1993, True),
        ("arXiv:2301.01234v2  [cs.CL]  3 Jan 2023", 2023, True),
        ("copyright © 2006 by Ada Lovelace\nRevised December 2012", 2006, False),
        ("Copyright 1981 by the Society.\nPublished in Engines and Looms 2, 4, November, 1984", 1984, False),
        ("This paper dates from 1984, and circulated as a memo", 1984, False),
        ("Draft 7/01, pp. 1-66,", 2001, False),
    ],
)
def test_printed_years(text: str, year: int, sure: bool) -> None:
    assert find_year(f"A Title\n{text}\nBody", "", "D:20200101", "") == Field(year, "page", sure)


@pytest.mark.parametrize(
    "text",
    [
        "They met in 1984.",
        "what people posted on May 4, 2020, was read",
        "as in [Knuth 1974, p. 3]",
        "with 2048 nodes",
        "in the 26 rooms of 1987",
        "2/3/1843 of them",
        "between 1990-1995 engines grew",
    ],
)
def test_a_number_in_the_text_is_no_date(text: str) -> None:
    assert find_year(text, "", "", "").value is None


@pytest.mark.parametrize(
    ("made", "cited", "found"),
    [
        ("D:20040425125048", (1971, 1974, 1974, 1969), Field(1974, "cited works", False)),  # a scan is younger
        ("D:20120604102756", (2010, 2011, 2011, 2009), Field(2012, "file date", False)),
        ("Thu May  3 21:55:42 2012", (2010, 2011, 2011, 2009), Field(2012, "file date", False)),
    ],
)
def test_the_file_date_counts_where_it_fits_what_is_cited(
    made: str, cited: tuple[int, ...], found: Field[int | None]
) -> None:
    works = "".join(f"\n[{number}] Looms, {year}." for number, year in enumerate(cited, 1))
    assert find_year("No date", "", made, f"References{works}") == found


@pytest.mark.parametrize(
    ("text", "arxiv", "made", "found"),
    [
        ("No date", "2301.01234v2", "D:20250101", Field(2023, "identifier", True)),
        ("No date", "hep-th/9901001", "", Field(1999, "identifier", True)),
        ("arXiv:2005.11401v4  [cs.CL]  12 Apr 2021", "2005.11401v4", "", Field(2021, "page", False)),  # a later version
    ],
)
def test_the_year_of_an_arxiv_identifier(text: str, arxiv: str, made: str, found: Field[int | None]) -> None:
    assert find_year(text, arxiv, made, "") == found
