import assert from "node:assert/strict";
import test from "node:test";
import { formatQuoted, getKey } from "../../folio/web/static/reader/citing.js";
import { findGoal, listLeads } from "../../folio/web/static/reader/leads.js";
import {
  checksum,
  cut,
  findMargin,
  findQuote,
  getBoxes,
  getText,
  getTextEdges,
  locate,
  trim,
} from "../../folio/web/static/reader/spans.js";
import { ACTUAL, chooseDpi, fitPage, stepZoom, turnPoint } from "../../folio/web/static/reader/zoom.js";

/** A page whose words are given by the character: [text, x0, y0, x1, y1]. */
function makePage(text, boxes, start = 100, direction = "ltr") {
  let at = 0;
  const words = boxes.map(([word, ...box]) => {
    const first = [...text].join("").indexOf(word, at);
    at = first + word.length;
    return [start + first, start + at, ...box];
  });
  return { page: 3, start, end: start + [...text].length, text, words, width: 600, height: 800, direction };
}

const LINES = makePage("The fern\ngrows", [
  ["The", 50, 10, 80, 20],
  ["fern", 84, 10, 124, 20],
  ["grows", 50, 24, 100, 34],
]);

test("a span has one box for each line, and a word that is partly in it a part of one", () => {
  assert.deepEqual(getBoxes(LINES, 100, 108), [[50, 10, 124, 20]]);
  assert.deepEqual(getBoxes(LINES, 104, 114), [
    [84, 10, 124, 20],
    [50, 24, 100, 34],
  ]);
  assert.deepEqual(getBoxes(LINES, 106, 108), [[104, 10, 124, 20]]);
  assert.deepEqual(getBoxes({ ...LINES, direction: "rtl" }, 106, 108), [[84, 10, 104, 20]]);
  assert.deepEqual(getBoxes(LINES, 0, 100), []);
});

test("an address marks a span only while its words stand there", () => {
  const words = checksum("Fern");
  assert.deepEqual(locate(LINES, { page: 3, from: 104, to: 108, quote: "", words }), [104, 108]);
  assert.equal(locate(LINES, { page: 3, from: 100, to: 103, quote: "", words }), null);
  assert.match(words, /^[0-9a-z]{1,7}$/);
});

test("columns side by side stay apart", () => {
  const columns = makePage("left right", [
    ["left", 50, 10, 250, 20],
    ["right", 320, 10, 500, 20],
  ]);
  assert.equal(getBoxes(columns, 100, 110).length, 2);
});

test("words are found without regard to spaces, signs, case and accents", () => {
  const page = makePage("𝔸 “Café” de-\ntail", []);
  assert.deepEqual(findQuote(page, "cafe detail"), [103, 117]);
  assert.equal(getText(page, 103, 117), "Café” de-\ntail");
  assert.equal(findQuote(page, "tea"), null);
  assert.equal(findQuote(page, "…"), null);
});

test("a mark is its span, or its words where the text has changed", () => {
  assert.deepEqual(locate(LINES, { page: 3, from: 104, to: 108, quote: "fern" }), [104, 108]);
  assert.deepEqual(locate(LINES, { page: 3, from: 100, to: 103, quote: "fern" }), [104, 108]);
  assert.deepEqual(locate(LINES, { page: 3, from: 90, to: 103 }), [90, 103]);
  // Of a span over several pages, the part on this page is compared.
  const { end } = LINES;
  const part = getText(LINES, end - 4, end);
  assert.deepEqual(locate(LINES, { page: 3, from: end - 4, to: end + 5, quote: `${part} next` }), [end - 4, end + 5]);
  assert.equal(locate(LINES, { page: 3, from: end - 4, to: end + 5, quote: "other words" }), null);
  assert.deepEqual(locate(LINES, { page: 2, from: 98, to: 103, quote: `x ${getText(LINES, 100, 103)}` }), [98, 103]);
  assert.equal(locate(LINES, { page: 3, from: 98, to: 103, quote: `x ${getText(LINES, 100, 103)}` }), null);
  assert.deepEqual(locate(LINES, { page: 3, from: 900, to: 904, quote: "fern" }), [104, 108]);
  assert.equal(locate(LINES, { page: 4, from: 200, to: 210 }), null);
  assert.equal(locate(LINES, { page: 4, quote: "fern" }), null);
  assert.equal(locate(LINES, { page: 3, quote: "moss" }), null);
});

test("a selection does not begin or end with spaces", () => {
  assert.deepEqual(trim(LINES, 103, 109), [104, 108]);
});

test("a text is cut where marks begin and end", () => {
  const one = { span: [102, 106] };
  const other = { span: [104, 200] };
  assert.deepEqual(cut(100, 110, [one, other]), [
    { start: 100, end: 102, marks: [] },
    { start: 102, end: 104, marks: [one] },
    { start: 104, end: 106, marks: [one, other] },
    { start: 106, end: 110, marks: [other] },
  ]);
});

test("the text of a page fits the view, and no page is shown twice as large for it", () => {
  assert.deepEqual(getTextEdges(LINES), [50 / 600, 124 / 600]);
  const [page, view] = [
    { width: 600, height: 800 },
    { width: 600, height: 400 },
  ];
  assert.equal(fitPage("width", page, view, null), 1);
  assert.equal(fitPage("page", page, view, null), 0.5);
  assert.ok(Math.abs(fitPage("text", page, view, [0.1, 0.9]) - 1 / 0.86) < 1e-9);
  assert.equal(fitPage("text", page, view, [0.1, 0.2]), 2);
});

test("pictures have the resolution that the screen needs, of few, and within the server's limit", () => {
  const page = { width: 612, height: 792 };
  assert.equal(chooseDpi(1, 1, page), 72);
  assert.equal(chooseDpi(1.1, 1, page), 96);
  assert.equal(chooseDpi(1.3, 2, page), 200);
  assert.equal(chooseDpi(9, 3, page), 400);
  assert.equal(chooseDpi(1, 1, { width: 14400, height: 14400 }), 36);
});

test("zoom goes in steps, from any size", () => {
  assert.equal(stepZoom(ACTUAL, 1), 1.1 * ACTUAL);
  assert.equal(stepZoom(1.04 * ACTUAL, -1), ACTUAL);
  assert.equal(stepZoom(5 * ACTUAL, 1), 5 * ACTUAL);
});

test("a quote is copied with its reference", () => {
  const bibtex = "@misc{fern2014,\n  title = {Ferns}\n}\n";
  const source = { page: 3, reference: "Fern, A. Ferns.", bibtex };
  const quoted = { text: "50% of\nferns_grow [x]", sources: [source] };
  assert.equal(formatQuoted(quoted, "plain"), "“50% of ferns_grow [x]” Fern, A. Ferns, p. 3.");
  assert.equal(formatQuoted({ ...quoted, text: "" }, "plain"), "Fern, A. Ferns, p. 3.");
  assert.equal(formatQuoted(quoted, "markdown"), "> 50% of ferns\\_grow \\[x\\]\n>\n> — Fern, A. Ferns, p. 3.\n");
  const hostile = formatQuoted({ ...quoted, text: "- &lt; $x$ http://a.b www.a.b" }, "markdown");
  assert.ok(hostile.startsWith("> \\- \\&lt; \\$x\\$ http\\://a.b www\\.a.b\n"));
  assert.ok(formatQuoted({ ...quoted, text: "1. x" }, "markdown").startsWith("> 1\\. x\n"));
  const latex = formatQuoted(quoted, "latex");
  assert.ok(latex.startsWith("``50\\% of ferns\\_grow [x]''~\\cite[p.~3]{fern2014}\n\n@misc{fern2014,"));
  assert.equal(getKey("% a comment\n@article{a2014b, title = {x}}"), "a2014b");
  assert.equal(
    formatQuoted({ ...quoted, text: "a\\b{c}~^" }, "latex").split("''")[0],
    "``a\\textbackslash{}b\\{c\\}\\textasciitilde{}\\textasciicircum{}",
  );
  assert.equal(
    formatQuoted({ ...quoted, text: "2⁶⁴ CO₂, x_i of 10⁻⁴ at 2^k and 2^(n/2) ³" }, "latex").split("''")[0],
    "``2$^{64}$ CO$_{2}$, x\\_i of 10$^{-4}$ at 2$^{k}$ and 2$^{n/2}$ $^{3}$",
  );
  const two = { ...quoted, sources: [source, { ...source, page: 5 }] };
  assert.equal(formatQuoted(two, "plain"), "“50% of ferns_grow [x]” Fern, A. Ferns, p. 3. Fern, A. Ferns, p. 5.");
  const cited = formatQuoted(two, "latex");
  assert.ok(cited.includes("~\\cite[p.~3]{fern2014} \\cite[p.~5]{fern2014}\n"));
  assert.equal(cited.split("@misc").length, 2);
});

test("a place on a page is where it is once the page is turned, and back", () => {
  const upright = { width: 600, height: 800, turn: 0 };
  const across = { width: 800, height: 600 };
  assert.deepEqual(turnPoint([10, 20], upright), [10, 20]);
  assert.deepEqual(turnPoint([10, 20], { ...across, turn: 90 }), [780, 10]);
  assert.deepEqual(turnPoint([10, 20], { ...upright, turn: 180 }), [590, 780]);
  assert.deepEqual(turnPoint([10, 20], { ...across, turn: 270 }), [20, 590]);
  for (const turn of [90, 180, 270]) {
    const turned = turnPoint([10, 20], { ...(turn % 180 ? across : upright), turn });
    assert.deepEqual(turnPoint(turned, { ...upright, turn: 360 - turn }), [10, 20]);
  }
});

test("a dot stands in the margin beside what it is on, on no word and on no other dot", () => {
  const page = makePage("left right stamp", [
    ["left", 60, 100, 280, 110],
    ["right", 320, 100, 540, 110],
  ]);
  const first = findMargin(page, [60, 100, 280], []);
  const second = findMargin(page, [60, 100, 280], [first]);
  assert.ok(first[0] < 60 && first[1] > 100);
  assert.ok(second[1] > first[1] || second[0] > 540);
  assert.ok(findMargin(page, [320, 100, 540], [])[0] > 540);
  const stamped = { ...page, words: [...page.words, [111, 116, 40, 80, 58, 300]] }; // a stamp in the margin
  const [x, y] = findMargin(stamped, [60, 100, 280], []);
  assert.ok(!(x > 33 && x < 65 && y > 73 && y < 307), `${x} ${y}`);
});

test("a lead without words leads to the line at its height, in the entry of the references that begins there", () => {
  const text = "[1] Otter\n[2] Seal";
  const page = {
    ...makePage(text, [
      ["[1]", 50, 100, 62, 110],
      ["Otter", 70, 100, 110, 110],
      ["[2]", 50, 130, 62, 140],
      ["Seal", 70, 130, 100, 140],
    ]),
    references: [
      [104, 109],
      [114, 118],
    ],
    paragraphs: [[100, 118]],
    links: [{ box: [48, 98, 63, 111], page: 3, uri: "", at: [50, 125] }],
    citations: [
      { start: 100, end: 103, page: 3, entry: [114, 118] },
      { start: 110, end: 113, page: 3, entry: [104, 109] },
    ],
  };
  const [link, cited, ...rest] = listLeads(page);
  assert.deepEqual([link.words, cited.words, rest.length], ["[1]", "[2]", 0]); // the link covers the first citation
  assert.deepEqual(findGoal(page, link), { page: 3, span: [114, 118], words: "Seal", top: 125 });
  assert.deepEqual(findGoal(page, cited).span, [104, 109]);
  assert.deepEqual(findGoal(page, { ...link, at: null }).span, null);
});
