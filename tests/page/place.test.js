import assert from "node:assert/strict";
import test from "node:test";
import { formatPlace, parsePlace } from "../../folio/web/static/base/place.js";

const PAPER = "ab".repeat(32);
const ROUND = [
  ["#ask", { view: "ask", id: "", query: {}, reading: null }],
  ["#c/AbC-1_x", { view: "ask", id: "AbC-1_x", query: {}, reading: null }],
  ["#search?q=sea+otters", { view: "search", id: "", query: { q: "sea otters" }, reading: null }],
  ["#library?tag=to+read", { view: "library", id: "", query: { tag: "to read" }, reading: null }],
  ["#review/0123456789abcdef", { view: "review", id: "0123456789abcdef", query: {}, reading: null }],
  [`#paper/${PAPER}`, { view: "paper", id: PAPER, query: {}, reading: null }],
  [
    `#paper/${PAPER}/p/10?from=5&to=9`,
    { view: "paper", id: PAPER, query: {}, reading: { paper: PAPER, page: 10, from: 5, to: 9 } },
  ],
  [
    `#ask?read=${PAPER}&p=2&from=5&to=9&w=1ab2z`,
    { view: "ask", id: "", query: {}, reading: { paper: PAPER, page: 2, from: 5, to: 9, words: "1ab2z" } },
  ],
  [
    `#c/x?year=2014-&read=${PAPER}&p=3`,
    { view: "ask", id: "x", query: { year: "2014-" }, reading: { paper: PAPER, page: 3, from: null, to: null } },
  ],
];

for (const [hash, place] of ROUND) {
  test(`the address ${hash.slice(0, 30)} names its state`, () => {
    assert.deepEqual(parsePlace(hash), place);
    assert.equal(formatPlace(place), hash);
  });
}

test("an address that is not understood shows the start", () => {
  const hashes = ["", "#", "#paper/zz", "#paper/../../x", "#c/<b>", "#nowhere?read=1", "#ask?read=abc"];
  for (const hash of [...hashes, "#review", "#review/zz"]) {
    assert.deepEqual(parsePlace(hash), { view: "ask", id: "", query: {}, reading: null });
  }
});

test("a span that is not one marks nothing", () => {
  for (const span of ["from=9&to=5", "from=x&to=9", "from=5", "from=-1&to=4", "from=5&to=5"]) {
    const { reading } = parsePlace(`#ask?read=${PAPER}&p=0&${span}`);
    assert.deepEqual(reading, { paper: PAPER, page: 1, from: null, to: null });
  }
});

test("words of a person come back as they were", () => {
  const query = { q: 'a&b=c #d?"é\u202e%20', tag: "ünï/код" };
  assert.deepEqual(parsePlace(formatPlace({ view: "search", id: "", query, reading: null })).query, query);
});
