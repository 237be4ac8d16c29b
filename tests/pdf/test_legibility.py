"""Whether text is language: in many languages, in tables and code, and after each way in which an encoding breaks."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pymupdf
import pytest

from folio.errors import PaperLimit
from folio.pdf import ocr
from folio.pdf.legible import Verdict, judge
from folio.pdf.order import Box
from folio.pdf.reader import read_pdf
from tests.helpers.exhaustive import sample
from tests.helpers.paths import CASES, ROOT, SHARED
from tests.helpers.pdfs import encoded_page
from tests.helpers.real_papers import read_real

LANGUAGES = tomllib.loads((ROOT / "tests" / "data" / "languages.toml").read_text(encoding="utf-8"))
ENGLISH = LANGUAGES["en"]

NO_PROSE = {
    "numbers": "\n".join(f"{n} {n * 1.7:.2f} {n * n} {n / 3:.4f} ± 0.{n:02d}" for n in range(60)),
    "formulas": "f ( x ) = x 2 + y 2 , g ( x , y ) = d x d y , k − 2 , P k ( x , y , X k − 2 , t ) d X k − 2 \n" * 12,
    "references": "".join(
        f"[{n}] K. Przybyszewski, Z. Szczęsny, and H. Nguyễn. On wqos. In Proc. XYZ'{n}, pp. {n}-{n + 9}, {1950 + n}.\n"
        for n in range(20)
    ),
    "index": "\n".join(f"{word}, {len(word)}, {7 * len(word)}-{9 * len(word)}" for word in sorted(ENGLISH.split())),
    "nucleotides": "ACGTTGCAGGATCCATGCAATTTAGCGC GGCATTACGA TTTACGCGAT\n" * 20,
    "amino acids": "MKTAYIAKQR QISFVKSHFS RQLEERLGLI EVQAPILSRV GDGTQDNLSG AEKAVQVKVK\n" * 12,
    "hexadecimal": "".join(f"{(n * 2654435761) % 2**32:08x} " for n in range(200)),
    "alphabet": "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789\n" * 6,
    "code": "def f(xs):\n    return [g(x) for x in xs if x != None and x['qty'] > 0]\n" * 12,
    "drawing": "+---+   +---+\n| A |-->| B |\n+---+   +---+\n" * 20,
}  # fmt: skip


def shift(text: str, by: int) -> str:
    """The text as it comes out with a map to Unicode that is off by so many codes."""
    return "".join(chr((ord(sign) - 33 + by) % 94 + 33) if 33 <= ord(sign) < 127 else sign for sign in text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_is_legible_unless_its_map_is_shifted(language: str) -> None:
    text = LANGUAGES[language] * 4
    assert judge(text) is Verdict.LEGIBLE
    if language in ("ru", "el", "ar", "he", "hi", "zh"):
        shifted = "".join(chr(ord(sign) + 3) if sign.isalpha() else sign for sign in text)
        assert judge(shifted) is Verdict.ILLEGIBLE


@pytest.mark.parametrize("kind", NO_PROSE)
def test_what_is_no_prose_is_not_taken_for_broken(kind: str) -> None:
    assert judge(NO_PROSE[kind]) is not Verdict.ILLEGIBLE


@pytest.mark.parametrize(
    "broken",
    [
        *(shift(ENGLISH * 3, by) for by in (1, 3, -1, 13, -29, 29)),
        "".join(chr(0xE000 + ord(sign)) if sign.isalpha() else sign for sign in ENGLISH),
        "".join(chr(ord(sign) % 31 + 1) if sign.isalpha() else sign for sign in ENGLISH),
        "\ufffd" * 200,
        "".join(chr(0x4E00 + 37 * ord(a)) + chr(0x0621 + ord(a) % 20) + "ĴǎƶơĹŎ"[n % 6] for n, a in enumerate(ENGLISH)),
        " ".join(shift(ENGLISH * 3, -13)),
        "[olZtvZ@m{j= kZ#vbq} ]xqjW@vzK~ " * 12,
    ],
)
def test_broken_encodings_are_found(broken: str) -> None:
    assert judge(broken) is Verdict.ILLEGIBLE


MIXED = {
    "Chinese": "BERT模型在F1值上比LSTM高3.2个百分点，而在GPU显存占用上仅为GPT的一半。"
    "我们使用了Adam优化器和Transformer编码器。",
    "Chinese with variables": "当x大于零时y随n增大而减小，设函数f在区间I上连续，且其导数g有界，"
    "则存在常数c使得结论成立。",
    "Japanese": "本研究ではBERTを用いた文書分類モデルを提案し、GLUEとSQuADのデータセットで"
    "評価した。CNNよりもF1が高い。",
    "Korean": "BERT를 기반으로 하는 모델을 GLUE와 SQuAD에서 평가하였다. GPU에서 학습하였고 LSTM보다 F1이 높았다.",
    "Thai": "โมเดลBERTมีความแม่นยำสูงกว่าLSTMในชุดข้อมูลGLUEและใช้หน่วยความจำของGPUน้อยกว่าGPTครึ่งหนึ่ง ",
    "Russian": "Модель BERT-подобной архитектуры обучена на GPU-кластере; F1-мера выше, чем у LSTM-сети, а"
    " API-интерфейс Pythonа и MATLABом IT-компании проверен в DNA-анализе методом PCR-диагностики. ",
    "Hebrew": "המודל הוצג בBERT ונבדק בPython על נתוני הGLUE והתוצאות היו טובות מאלה של הLSTM בכל המבחנים שנערכו. ",
    "Arabic": "تم تدريب نموذج الBERT على بيانات الGLUE باستخدام الGPU وكانت النتائج"
    " أفضل من نتائج الLSTM في جميع الاختبارات. ",
}
_LOOK_ALIKES = str.maketrans("aceoxyAET", "асеохуАЕТ")


@pytest.mark.parametrize("kind", MIXED)
def test_words_of_two_scripts_in_one_line_are_legible(kind: str) -> None:
    assert judge(MIXED[kind] * 8) is Verdict.LEGIBLE
    assert judge("\n".join(MIXED[kind].replace(" ", "")[start : start + 30] for start in range(0, 90, 30)) * 8) is (
        Verdict.LEGIBLE
    )


@pytest.mark.parametrize(
    "broken",
    [
        (ENGLISH * 3).translate(_LOOK_ALIKES),  # a font whose map gives half of its letters another script
        " ".join("".join("аб中文ab"[(7 * n + 3 * k) % 6] for k in range(9)) for n in range(60)),
        "".join("مa文бǎ"[n % 5] for n in range(400)),
    ],
)
def test_letters_of_several_scripts_in_each_word_are_not(broken: str) -> None:
    assert judge(broken) is Verdict.ILLEGIBLE


@pytest.mark.parametrize("name", ["zh", "ko", "zh_plain"])
def test_reported_papers_with_latin_words_are_read(name: str) -> None:
    pages = read_pdf(CASES / "cjklatin" / f"{name}.pdf").pages
    assert all(len(page.text) > 200 and not page.problem for page in pages)
    if name == "zh":
        assert "BERT模型在F1值上比LSTM高3.2个百分点" in pages[1].text


@pytest.mark.parametrize("text", ["", "Plate 4", "حَبيبي habibi", "1\n2\n3\n" * 40])
def test_a_page_with_hardly_any_text_has_no_verdict(text: str) -> None:
    assert judge(text) is Verdict.UNKNOWN


def _paper(path: Path, broken: int, sound: int = 0) -> Path:
    """Pages whose map to Unicode is off by three, one of them with too little text to tell, and sound ones."""
    document = pymupdf.open()
    for number in range(broken):
        encoded_page(document, ["Figure 7 of 9"] if number == 1 else _lines(number), 3)
    for number in range(sound):
        encoded_page(document, _lines(number), 0)
    document.save(path)
    document.close()
    return path


def _lines(number: int) -> list[str]:
    words = ENGLISH.split()
    return [f"{number} {' '.join(words[start : start + 8])}" for start in range(0, len(words), 8)] * 3


def test_encoded_pages_are_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "engine", lambda: None)
    parsed = read_pdf(_paper(tmp_path / "a.pdf", broken=4, sound=2), ocr=True)
    assert [bool(page.text) for page in parsed.pages] == [False] * 4 + [True] * 2
    problem = "the text is encoded so that no program can read it; install Tesseract"
    assert [page.problem for page in parsed.pages] == [problem] * 4 + ["", ""]
    assert not parsed.problems  # the line above says what to do


def test_encoded_pages_are_read_by_ocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ocr.Engine("Stand-in", lambda page: [[Box(60, 80, 400, 92, f"Curlews, as page {page.number} shows.")]])
    monkeypatch.setattr(ocr, "engine", lambda: engine)
    parsed = read_pdf(_paper(tmp_path / "a.pdf", broken=3, sound=1), ocr=True)
    assert [page.text for page in parsed.pages[:3]] == [f"Curlews, as page {n} shows." for n in range(3)]
    assert parsed.pages[0].problem == (
        "read by OCR (Stand-in), because its text is encoded so that no program can read it"
    )
    assert "curlew" in parsed.pages[3].text


def test_a_short_page_is_kept_among_legible_pages(tmp_path: Path) -> None:
    parsed = read_pdf(_paper(tmp_path / "a.pdf", broken=2, sound=5))
    assert [bool(page.text) for page in parsed.pages] == [False, True, *[True] * 5]
    assert "fxuohz" not in f"{parsed.title} {parsed.authors}"  # of the encoded first page


def test_a_file_that_is_encoded_throughout_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "engine", lambda: None)
    with pytest.raises(PaperLimit, match="encoded so that no program can read it, and no OCR engine is installed"):
        read_pdf(_paper(tmp_path / "a.pdf", broken=3), ocr=True)


def _shared(folder: str) -> list[Path]:
    found = sorted((SHARED / folder).rglob("*.pdf"))
    if not found:
        pytest.skip(f"the papers ../shared/{folder} are not here")
    return found


def test_no_page_of_real_papers_is_taken_for_broken() -> None:
    for path in sample(_shared("papers"), every=8):
        assert [page.number for page in read_real(path).pages if "encoded" in page.problem] == [], path.name


def first_pages(path: Path, folder: Path, count: int) -> Path:
    """The first pages of a paper, which are read sooner than all of it."""
    with pymupdf.open(path) as document:
        document.select(range(count))
        document.save(folder / path.name)
    return folder / path.name


def test_real_broken_encodings_are_found(tmp_path: Path) -> None:
    technology = next(path for path in _shared("nasty") if path.name == "TAMReview.pdf")
    parsed = read_pdf(first_pages(technology, tmp_path, 8))
    assert [page.number for page in parsed.pages if "encoded" in page.problem] == list(range(2, 9))
    animation = next(path for path in _shared("mixed") if "functional-reactive-animation" in path.name)
    with pytest.raises(PaperLimit, match="encoded so that no program can read it"):
        read_pdf(first_pages(animation, tmp_path, 4))


@pytest.mark.parametrize("name", ["ArabicCIDTrueType", "XiaoBiaoSong", "chinese-tables", "issue16538", "issue11656",
                                  "issue20504", "mixedfonts", "text-find-ligatures", "noembed-identity"])  # fmt: skip
def test_real_pages_in_many_scripts_are_legible(name: str) -> None:
    path = next(path for path in _shared("nasty/scripts") if path.stem == name)
    assert all(page.text and "encoded" not in page.problem for page in read_pdf(path).pages)
