"""PDFs with headings and references, as papers have them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pymupdf

RAFT = {
    "Abstract": "This paper presents OtterNet, a network of buoys that counts sea otters along a coast. We count sea"
    " otters by the sound of the shells that they open. OtterNet reduces the cost of a census by 40 percent.",
    "1 Introduction": "Sea otters float in rafts of kelp, and nobody has counted them at night. OtterNet is a network"
    " of buoys that listens for otters. Boats are expensive and disturb the animals. Aeroplanes see no otter at night."
    " OtterNet needs neither boats nor aeroplanes.",
    "2 Methods": "We use buoys with two microphones and a small computer to find the places of sea otters. The"
    " buoys of OtterNet float a kilometre apart, and each sends its counts by radio. We trained the computer of a buoy"
    " with the sounds of 300 shells.",
    "3 Results": "Our results show that OtterNet counts 95 percent of the sea otters that observers see. The census"
    " of the bay of Monterey took three nights. Observers in boats had needed twelve days for it.",
    "4 Limitations": "OtterNet is limited to sea otters that open shells, so we do not count their pups. Storms drown"
    " the sound of the shells.",
}
ICE = {
    "Abstract": "We measure the length of glaciers from the sound of their melt water. This paper describes a method"
    " for glaciers of the Alps.",
    "1 Introduction": "Glaciers of the Alps retreat each year. We listen to the water below them with microphones.",
    "2 Results": "The results show that the Aletsch glacier has a length of 23 kilometres.",
}
OTTER_TITLE, ICE_TITLE = "OtterNet: Counting Sea Otters by Sound", "Listening to the Glaciers of the Alps"
CITES_OTTERS = (
    "[1] A. Byte and B. Seal. OtterNet: Counting Sea Otters by Sound. In Proceedings of Tides, 2001.",
    "[2] C. Walrus. Ice floes revisited. Journal of Ice, 4(2):1-9, 1999.",
    "[3] D. Whale. Songs of the sea. PhD thesis, University of the Sea, 1987.",
)


def sectioned_pdf(path: Path, title: str, sections: Mapping[str, str], references: Sequence[str] = ()) -> Path:
    """A PDF with a title, and with headings in bold above the text of the sections and the references."""
    document = pymupdf.open()
    page, y = document.new_page(), 80.0

    def write(text: str, size: float, font: str, gap: float) -> None:
        nonlocal page, y
        for line in textwrap.wrap(text, 86):
            if y > 740:
                page, y = document.new_page(), 80.0
            page.insert_text((72, y), line, fontsize=size, fontname=font)
            y += size * 1.3
        y += gap

    write(title, 18, "hebo", 6)
    write("Ada Byte", 11, "helv", 14)
    for heading, text in sections.items():
        write(heading, 13, "hebo", 4)
        write(text, 10, "helv", 12)
    if references:
        write("References", 13, "hebo", 4)
    for reference in references:
        write(reference, 10, "helv", 3)
    path.parent.mkdir(parents=True, exist_ok=True)
    document.set_metadata({"title": title, "author": "Ada Byte"})
    document.save(path)
    document.close()
    return path
