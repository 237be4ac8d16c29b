"""PDFs made by hand to take memory, time or the stack, each from a few kilobytes or a megabyte of file."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence

from campaign.papers import assembled, stream

Bomb = Callable[[random.Random], bytes]
_BOX = b"/MediaBox[0 0 595 842]"
_FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
_TEXT = b"BT /F1 10 Tf 72 740 Td (A page of ordinary words, as any other paper has them.)Tj ET\n"


def bomb(chance: random.Random) -> tuple[bytes, str]:
    """One of them, and its name."""
    made = chance.choice(BOMBS)
    return made(chance), f"bomb: {made.__name__.strip('_')}"


def _document(
    contents: bytes = stream(_TEXT),
    *,
    catalog: bytes = b"",
    page: bytes = b"",
    resources: bytes = b"",
    more: Sequence[bytes] = (),
    pages: int = 1,
    info: bytes = b"",
    box: bytes = _BOX,
) -> bytes:
    """Objects 1 to 4: catalog, pages, font, contents; then `more`, from 5; then a page for each of `pages`."""
    first = 5 + len(more)
    kids = b" ".join(b"%d 0 R" % number for number in range(first, first + pages))
    one = b"<</Type/Page/Parent 2 0 R%s/Resources<</Font<</F1 3 0 R>>%s>>/Contents 4 0 R%s>>" % (box, resources, page)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, kids),
        _FONT,
        contents,
        *more,
        *[one] * pages,
    ]
    if info:
        return assembled([*objects, info], info=len(objects) + 1)
    return assembled(objects)


def _packed(data: bytes, entries: bytes = b"") -> bytes:
    return stream(zlib.compress(data, 1), b"/Filter/FlateDecode" + entries)


def _twice_packed(megabytes: int, byte: bytes = b" ") -> bytes:
    """So many megabytes of one byte. A flushed piece of a deflate stream can be repeated as it is."""
    packer = zlib.compressobj(9)
    pieces = [packer.compress(byte * 2**20) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)]
    return stream(zlib.compress(pieces[0] + pieces[1] * (megabytes - 1)), b"/Filter[/FlateDecode/FlateDecode]")


def _long_labels(chance: random.Random) -> bytes:
    prefix = b"L" * chance.choice((1000, 100_000, 1_000_000))
    pages = chance.choice((10, 1000, 1500))
    return _document(catalog=b"/PageLabels<</Nums[0<</S/D/P(%s)>>]>>" % prefix, pages=pages)


def _many_labels(chance: random.Random) -> bytes:
    nums = b"".join(b"%d<</S/r/St %d>>" % (n, chance.choice((1, 99_999, 2**31 - 1))) for n in range(2000))
    return _document(catalog=b"/PageLabels<</Nums[%s]>>" % nums, pages=200)


def _long_metadata(chance: random.Random) -> bytes:
    text = chance.choice((b"A. Author; ", b"X", b"\\377", b"Title of a paper and then, "))
    text *= chance.choice((10**4, 4 * 10**6)) // len(text)
    return _document(info=b"<</Title(%s)/Author(%s)/Subject(%s)>>" % (text, text, text[:1000]))


def _long_outline(chance: random.Random) -> bytes:
    title = b"T" * chance.choice((10, 1_000_000))
    items = [b"<</Title(%s)/Parent 5 0 R/Next %d 0 R/Dest[8 0 R/Fit]>>" % (title, n) for n in (7, 6)]
    return _document(catalog=b"/Outlines 5 0 R", more=[b"<</First 6 0 R/Last 7 0 R/Count 9>>", *items])


def _deep_nesting(chance: random.Random) -> bytes:
    deep = chance.choice((10_000, 500_000))
    one = chance.choice((b"[", b"<</A"))
    return _document(more=[one * deep + {b"[": b"]", b"<</A": b">>"}[one] * deep], catalog=b"/Names 5 0 R")


def _deep_pages(chance: random.Random) -> bytes:
    deep = chance.choice((100, 20_000))
    nodes = [b"<</Type/Pages/Count 1/Kids[%d 0 R]/Parent %d 0 R>>" % (n + 3, n + 1) for n in range(deep)]
    page = b"<</Type/Page/Parent %d 0 R%s/Resources<<>>>>" % (deep + 1, _BOX)
    return assembled([b"<</Type/Catalog/Pages 2 0 R>>", *nodes, page])


def _many_pages(chance: random.Random) -> bytes:
    return _document(pages=chance.choice((20_000, 60_000)))


def _shared_pages(chance: random.Random) -> bytes:
    count = chance.choice((10_000, 200_000))
    page = b"<</Type/Page/Parent 2 0 R%s/Resources<</Font<</F1 4 0 R>>>>/Contents 5 0 R>>" % _BOX
    pages = b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, b"3 0 R " * count)
    return assembled([b"<</Type/Catalog/Pages 2 0 R>>", pages, page, _FONT, stream(_TEXT)])


def _false_count(chance: random.Random) -> bytes:
    count = chance.choice((10**6, 2**31 - 1, 10**12, -1))
    page = b"<</Type/Page/Parent 2 0 R%s>>" % _BOX
    return assembled([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count %d/Kids[3 0 R 2 0 R]>>" % count, page])


def _giant_picture(chance: random.Random) -> bytes:
    side = chance.choice((20_000, 100_000, 10**9))
    picture = b"/Type/XObject/Subtype/Image/ColorSpace/Device%s/BitsPerComponent 8/Width %d/Height %d" % (
        chance.choice((b"Gray", b"RGB", b"CMYK")), side, side,
    )  # fmt: skip
    contents = stream(b"q 595 0 0 842 0 0 cm /I Do Q\n" + chance.choice((_TEXT, b"")))
    return _document(contents, resources=b"/XObject<</I 5 0 R>>", more=[_packed(bytes(10**6), picture)])


def _many_pictures(chance: random.Random) -> bytes:
    picture = stream(b"\x80", b"/Type/XObject/Subtype/Image/ColorSpace/DeviceGray/BitsPerComponent 8/Width 1/Height 1")
    drawn = b"q 595.0002 0 0 842 0 0 cm /I Do Q\n" * chance.choice((1000, 50_000))
    return _document(_packed(drawn + _TEXT), resources=b"/XObject<</I 5 0 R>>", more=[picture])


def _recursive_form(chance: random.Random) -> bytes:
    form = stream(
        b"/X Do /X Do " + _TEXT, b"/Type/XObject/Subtype/Form%s/Resources<</XObject<</X 5 0 R>>>>" % b"/BBox[0 0 9 9]"
    )
    return _document(stream(b"/X Do"), resources=b"/XObject<</X 5 0 R>>", more=[form])


def _doubling_forms(chance: random.Random) -> bytes:
    """Each form draws the next one some times: from thirty objects, thousands of millions."""
    levels, times = chance.choice(((20, 2), (30, 2), (9, 10), (12, 10)))
    own = b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>/XObject<</X %d 0 R>>>>"
    forms = [stream(b"/X Do " * times, own % (6 + n)) for n in range(levels)]
    return _document(stream(b"/X Do"), resources=b"/XObject<</X 5 0 R>>", more=[*forms, stream(_TEXT, own % 3)])


def _packed_contents(chance: random.Random) -> bytes:
    piece = chance.choice((b" ", b"q ", b"BT ET ", b"0 0 m 9 9 l S ", b"/F1 10 Tf ", b"[", b"("))
    return _document(_packed(_TEXT + piece * (chance.choice((5, 50)) * 10**6 // len(piece))))


def _twice_packed_contents(chance: random.Random) -> bytes:
    return _document(_twice_packed(chance.choice((100, 1000))))


def _much_text(chance: random.Random) -> bytes:
    line = b"(" + b"words and words " * 60 + b")Tj T*\n"
    return _document(_packed(b"BT /F1 1 Tf 1 TL 0 800 Td\n" + line * chance.choice((1000, 20_000)) + b"ET"))


def _long_unicode(chance: random.Random) -> bytes:
    """Every glyph stands for a long text."""
    long = b"0041" * chance.choice((30, 500, 16_000))
    table = b"1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <00> <FF> <%s> endbfrange" % long
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>"
    contents = _packed(b"BT /G 1 Tf 0 400 Td " + b"(abcdefghij)Tj " * 20_000 + b"ET")
    return _document(contents, resources=b"/Font<</G 5 0 R>>", more=[font, stream(table)])


def _recursive_glyphs(chance: random.Random) -> bytes:
    font = (
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 1 1]/FontMatrix[1 0 0 1 0 0]/FirstChar 97/LastChar 97/Widths[1]"
        b"/Encoding<</Differences[97/a]>>/CharProcs<</a 6 0 R>>/Resources<</Font<</G 5 0 R>>>>>>"
    )
    glyph = stream(b"1 0 d0 BT /G 1 Tf (aaaaaaaaaa)Tj ET")
    contents = stream(b"BT /G 10 Tf 9 9 Td (aaaaaaaaaa)Tj ET " + _TEXT)
    return _document(contents, resources=b"/Font<</G 5 0 R>>", more=[font, glyph])


def _odd_page(chance: random.Random) -> bytes:
    box = chance.choice(
        (b"0 0 1e9 1e9", b"0 0 1e-9 1e-9", b"-1e30 -1e30 1e30 1e30", b"0 0 14400000 14400000", b"5 5 5 5")
    )
    return _document(box=b"/MediaBox[%s]" % box, page=chance.choice((b"", b"/UserUnit 1e9", b"/Rotate 37")))


def _many_fields(chance: random.Random) -> bytes:
    field = b"<</FT/Tx/T(f)/V(%s)/Subtype/Widget/Type/Annot/Rect[0 0 9 9]>>" % (b"v" * chance.choice((10, 1000)))
    count = chance.choice((1000, 10_000))
    fields = b"[" + b"".join(b"%d 0 R " % (5 + n) for n in range(count)) + b"]"
    return _document(more=[field] * count, catalog=b"/AcroForm<</Fields%s>>" % fields, page=b"/Annots" + fields)


def _tiny_text(chance: random.Random) -> bytes:
    said = chance.choice((b". . . . . . . .", b"................", b"words too small to read", b"\\000\\001\\002"))
    size = chance.choice((b"2.1", b"0.001", b"1000", b"-10"))
    return _document(stream(b"BT /F1 %s Tf 72 740 Td " % size + b"(%s)Tj 0 -3 Td " % said * 200 + b"ET"))


def _object_streams(chance: random.Random) -> bytes:
    own = stream(b"1 0 " * 1000, b"/Type/ObjStm/N %d/First 10/Extends 5 0 R" % chance.choice((1000, 2**31 - 1)))
    table = stream(
        chance.randbytes(500), b"/Type/XRef/W[1 8 8]/Size %d/Root 1 0 R/Prev 10" % chance.choice((100, 2**31 - 1))
    )
    made = _document(more=[own, table])
    return made[: made.rindex(b"startxref")] + b"startxref\n%d\n%%%%EOF" % made.index(b"6 0 obj")


def _locked(chance: random.Random) -> bytes:
    numbers = b"/V %d/R %d/Length %d" % (
        chance.choice((1, 2, 4, 5)),
        chance.choice((2, 3, 4, 6)),
        chance.choice((40, 128, 256)),
    )
    keys = b"/O<%s>/U<%s>" % (b"41" * 32, b"00" * 32)
    made = _document(more=[b"<</Filter/Standard%s/P -4%s>>" % (numbers, keys)])
    return made.replace(b"trailer<<", b"trailer<</Encrypt 5 0 R/ID[(a)(a)]")


def _soft_masks(chance: random.Random) -> bytes:
    state = b"<</Type/ExtGState/SMask<</S/Luminosity/G 6 0 R>>>>"
    own = b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Group<</S/Transparency>>/Resources<</ExtGState<</S 5 0 R>>>>"
    drawn = b"/S gs 0 0 595 842 re f " * chance.choice((1, 1000))
    return _document(stream(drawn + _TEXT), resources=b"/ExtGState<</S 5 0 R>>", more=[state, stream(drawn, own)])


BOMBS: tuple[Bomb, ...] = (
    _long_labels, _long_labels, _many_labels, _long_metadata, _long_metadata, _long_outline, _deep_nesting, _deep_pages,
    _many_pages, _shared_pages, _false_count, _giant_picture, _many_pictures, _recursive_form, _doubling_forms,
    _packed_contents, _twice_packed_contents, _much_text, _long_unicode, _recursive_glyphs, _odd_page, _many_fields,
    _tiny_text, _object_streams, _locked, _soft_masks,
)  # fmt: skip
