import assert from "node:assert/strict";
import test from "node:test";
import {
  choosePapers,
  formatWanted,
  isNarrowed,
  joinValues,
  listCounts,
  parseWanted,
  sortPapers,
  splitValues,
} from "../../folio/web/static/library/catalog.js";

const make = (id, more = {}) => ({
  id,
  file: `${id}.pdf`,
  title: id,
  authors: [],
  year: null,
  venue: "",
  doi: "",
  arxiv: "",
  tags: [],
  collections: [],
  unsure: [],
  notice: null,
  added: "2026-01-01",
  read: "",
  ...more,
});
const ids = (papers) => papers.map(({ id }) => id).join(" ");
const choose = (papers, query) => choosePapers(papers, parseWanted(query));

const OTTERS = make("otters", { authors: ["Ann Otter", "Bo Seal"], year: 2014, venue: "Kelp", tags: ["fur", "sea"] });
const ICE = make("ice", { authors: ["Cy Frost"], year: 2018, venue: "Alps", tags: ["sea"], read: "2026-02-02" });
const HERONS = make("herons", { title: "Hérons", year: 2016, unsure: ["title"], collections: ["Birds/Delta"] });
const PAPERS = [OTTERS, ICE, HERONS];

test("what is wanted comes back from an address as it was", () => {
  const query = {
    q: "fur & sea",
    year: "2014-2018",
    author: "A;B",
    tag: "x",
    unsure: "1",
    sort: "-year",
    check: "all",
  };
  const wanted = parseWanted(query);
  assert.deepEqual(wanted.values.author, ["A", "B"]);
  assert.deepEqual(
    [wanted.from, wanted.to, wanted.flags, wanted.column, wanted.isDown],
    [2014, 2018, ["unsure"], "year", true],
  );
  assert.deepEqual(parseWanted(formatWanted(wanted)), wanted);
  assert.ok(Object.values(formatWanted(parseWanted({ sort: "x", year: "soon" }))).every((value) => value === ""));
  for (const [typed, years] of [
    ["2014", [2014, 2014]],
    ["2014-", [2014, null]],
    ["-2014", [null, 2014]],
  ]) {
    const { from, to } = parseWanted({ year: typed });
    assert.deepEqual([from, to], years);
    assert.equal(formatWanted(parseWanted({ year: typed })).year, typed);
  }
});

test("values with any characters share one text", () => {
  for (const values of [["a;b", "c\\"], ["\\;", ";", "a\\;b"], ["<b>", "ß ★"], []]) {
    assert.deepEqual(splitValues(joinValues(values)), values);
  }
});

test("every word is looked for in all that is known, without accents", () => {
  assert.equal(ids(choose(PAPERS, { q: "heron" }).papers), "herons");
  assert.equal(ids(choose(PAPERS, { q: "SEA otter" }).papers), "otters");
  assert.equal(ids(choose(PAPERS, { q: "otter frost" }).papers), "");
});

test("facets narrow: one value of each, and all flags", () => {
  assert.equal(ids(choose(PAPERS, { tag: "sea" }).papers), "otters ice");
  assert.equal(ids(choose(PAPERS, { tag: "fur;sea", author: "Cy Frost" }).papers), "ice");
  assert.equal(ids(choose(PAPERS, { collection: "Birds" }).papers), "herons");
  assert.equal(ids(choose(PAPERS, { year: "2015-" }).papers), "ice herons");
  assert.equal(ids(choose(PAPERS, { unread: "1" }).papers), "otters herons");
  assert.equal(ids(choose(PAPERS, { unread: "1", unsure: "1" }).papers), "herons");
  const retracted = make("r", { notice: { kind: "retraction", mark: "RETRACTED", text: "" } });
  const corrected = make("c", { notice: { kind: "correction", mark: "", text: "" } });
  assert.equal(ids(choose([retracted, corrected], { retracted: "1" }).papers), "r");
});

test("a value is counted as if none of its facet were chosen", () => {
  const { counts } = choose(PAPERS, { tag: "fur", year: "2014" });
  assert.deepEqual(
    [...counts.tag],
    [
      ["fur", 1],
      ["sea", 1],
    ],
  );
  assert.deepEqual([...counts.author.keys()], ["Ann Otter", "Bo Seal"]);
  assert.equal(counts.flags.unread, 1);
  assert.deepEqual(
    [...choose(PAPERS, { tag: "fur" }).counts.tag],
    [
      ["fur", 1],
      ["sea", 2],
    ],
  );
  assert.equal(choose(PAPERS, { unsure: "1" }).counts.flags.unsure, 1);
  assert.deepEqual([...choose(PAPERS, {}).counts.collection.keys()], ["Birds", "Birds/Delta"]);
});

test("the chosen and the most frequent values are listed, and how many are left out", () => {
  const counts = new Map([
    ["a", 1],
    ["d", 2],
    ["b", 3],
    ["c", 3],
  ]);
  assert.deepEqual(listCounts(counts, ["a"], 3), {
    values: [
      ["a", 1],
      ["b", 3],
      ["c", 3],
    ],
    more: 1,
  });
  assert.deepEqual(listCounts(counts, ["gone"], 9).values[0], ["gone", 0]);
  assert.equal(listCounts(counts, [], 9).more, 0);
});

test("papers without a value come last either way", () => {
  assert.equal(ids(sortPapers(PAPERS, "authors", false)), "ice otters herons");
  assert.equal(ids(sortPapers(PAPERS, "authors", true)), "otters ice herons");
  assert.equal(ids(sortPapers(PAPERS, "year", true)), "ice herons otters");
  assert.equal(ids(sortPapers(PAPERS, "state", false)), "herons otters ice");
  assert.equal(ids(sortPapers([make("10"), make("9")], "title", false)), "9 10");
});

test("only what leaves papers out narrows", () => {
  assert.ok(!isNarrowed(parseWanted({ sort: "-year", q: " " })));
  assert.ok(isNarrowed(parseWanted({ unread: "1" })));
  assert.ok(isNarrowed(parseWanted({ tag: "x" })));
});
