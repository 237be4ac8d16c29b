"""The most characters, pages, names and messages that are read from one PDF: a file can claim anything.

Every limit is far above what real papers have, so a value that reaches one is junk. All are counts: what is read from a
file depends on the file alone, not on how fast or how busy the computer is.
"""

from __future__ import annotations

# Characters of text in one file, about 6,000 dense pages
TEXT_CHARACTERS = 20_000_000
# Pages in one file; a page takes 60 bytes of it
PAGES = 100_000
# Pages of one file that OCR reads, each of which takes seconds: the longest books have about as many
OCR_PAGES = 2000
# Characters of a page label; "Supplement-xviii" has 16. A longer one is ignored.
LABEL = 32
# Characters of a value in the file's metadata. Author lists of thousands of people fit; a longer value counts as empty.
METADATA = 100_000
# Characters of one author's name or organisation; with a longer one, the metadata names no authors.
AUTHOR = 200
# Pages that are searched for the front matter, as a cover may come first; lines of a page, and characters
FRONT_PAGES, FRONT_LINES, FRONT_CHARACTERS = 3, 600, 100_000
# Characters of a title, and lines
TITLE, TITLE_LINES = 300, 8
# Characters of an abstract, and of the name of a journal or a conference; a longer one is ignored.
ABSTRACT, VENUE = 6000, 200
# Authors of one paper; with more, none is listed.
AUTHORS = 5000
# Characters from the end of the text that are searched for the years of cited works
CITED_WITHIN = 200_000
# Problems reported for one file, and ranges of pages named in one of them; the rest are counted.
PROBLEMS, PAGE_RANGES = 200, 100
# Lines of one file that may be headings, and entries of its outline; a book has a few hundred headings.
HEADINGS = 10_000
