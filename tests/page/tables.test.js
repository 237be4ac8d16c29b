import assert from "node:assert/strict";
import test from "node:test";
import { formatPlace, parsePlace } from "../../folio/web/static/base/place.js";
import { findMove } from "../../folio/web/static/table/moves.js";
import { describePlot, makePlot } from "../../folio/web/static/table/plot.js";
import {
  applyCells,
  chooseRows,
  formatWanted,
  getNumber,
  getText,
  hasState,
  makeRows,
  markRunning,
  parseWanted,
  sortRows,
} from "../../folio/web/static/table/rows.js";

const COLUMNS = [
  { id: "size", name: "Sample size", question: "", kind: "number", unit: "km", choices: [] },
  { id: "blind", name: "Blinded", question: "", kind: "yes_no", unit: "", choices: [] },
  { id: "place", name: "Place", question: "", kind: "choice", unit: "", choices: ["Norway", "Chile"] },
  { id: "limits", name: "Limits", question: "What are its limits?", kind: "text", unit: "", choices: [] },
];

const find = (quote, more = {}) => ({
  quote,
  page: 2,
  label: "2",
  section: "",
  start: 0,
  end: quote.length,
  span: [10, 10 + quote.length],
  value: "",
  number: null,
  unit: "",
  by_model: false,
  ...more,
});

const cell = (paper, column, findings, more = {}) => ({
  paper,
  column,
  state: findings.length ? "found" : "not_found",
  findings,
  edit: "",
  edit_number: null,
  stale: false,
  closest: null,
  error: null,
  changed: 1,
  ...more,
});

const row = (paper, title, year) => ({
  paper,
  key: paper,
  label: `Otter ${year}`,
  title,
  year,
  file: `${paper}.pdf`,
  state: "here",
});

const metres = find("The raft drifted 900 m.", { value: "900 m", number: 0.9, unit: "km" });
const kilometres = find("It swam 23 km.", { value: "23 km", number: 23, unit: "km" });
const FIVE = find("They walked 5 km.", { value: "5 km", number: 5, unit: "km" });

const make = () =>
  makeRows({
    rows: [
      row("a", "Étude of kelp", 2001),
      row("b", "Sea ice", 2020),
      row("c", "Rafts", null),
      row("d", "Docks", 2010),
    ],
    cells: [
      cell("a", "size", [kilometres]),
      cell("b", "size", [metres]),
      cell("c", "size", []),
      cell("d", "size", [FIVE, kilometres]),
      cell("a", "blind", [find("It was not blinded.", { value: "no" })]),
      cell("b", "blind", [find("Nobody knew.", { value: "yes" })]),
      cell("a", "place", [find("In Chile", { value: "Chile" })]),
      cell("c", "place", [find("off Norway", { value: "Norway" })]),
      cell("b", "limits", [find("Few otters took part.", { value: "A small sample", by_model: true })]),
      cell("c", "limits", [], { state: "waiting" }),
      cell("d", "limits", [], { state: "edited", edit: "My own words", changed: 4 }),
    ],
  });

const papers = (rows) => rows.map(({ paper }) => paper).join("");
const order = (sort) => papers(sortRows(make(), COLUMNS, parseWanted({ sort })));
const choose = (query) => papers(chooseRows(make(), parseWanted(query)));

test("numbers are sorted in their column's unit, and rows without one come last either way", () => {
  assert.equal(order("size"), "bdac"); // 0.9, 5, 23 km; not found
  assert.equal(order("-size"), "adbc");
});

test("years, titles, yes before no, and the choices in their own order", () => {
  assert.equal(order("year"), "adbc");
  assert.equal(order("-year"), "bdac");
  assert.equal(order("title"), "dacb"); // Docks, Étude, Rafts, Sea ice
  assert.equal(order("blind"), "bacd");
  assert.equal(order("place"), "cabd");
});

test("without an order, or by a column that is gone, rows are as the server has them", () => {
  assert.equal(order(""), "abcd");
  assert.equal(order("removed"), "abcd");
});

test("an edited number is sorted by the person's number", () => {
  const rows = make();
  applyCells(rows, [cell("a", "size", [kilometres], { state: "edited", edit: "1 km", edit_number: 1, changed: 9 })]);
  assert.equal(getNumber(rows[0].cells.get("size")), 1);
  assert.equal(papers(sortRows(rows, COLUMNS, parseWanted({ sort: "size" }))), "badc");
});

test("rows are found by all words, in titles, values and quotes, without accents", () => {
  assert.equal(choose({ q: "etude" }), "a");
  assert.equal(choose({ q: "23 KM" }), "ad");
  assert.equal(choose({ q: "otters sample" }), "b");
  assert.equal(choose({ q: "sample", in: "size" }), "");
  assert.equal(choose({ q: "own words", in: "limits" }), "d");
});

test("what changes in a cell is found at once, and what was there no longer", () => {
  const rows = make();
  assert.equal(papers(chooseRows(rows, parseWanted({ q: "walked" }))), "d");
  const changed = applyCells(rows, [cell("d", "size", [kilometres], { changed: 7 }), cell("a", "size", [kilometres])]);
  assert.deepEqual(
    changed.map(({ cell: { paper } }) => paper),
    ["d"],
  ); // the other is as it was
  assert.equal(papers(chooseRows(rows, parseWanted({ q: "walked" }))), "");
  assert.deepEqual(applyCells(rows, [cell("gone", "size", [FIVE])]), []);
});

test("rows are chosen by the state of their cells", () => {
  assert.equal(choose({ state: "not_found" }), "c");
  assert.equal(choose({ state: "differ" }), "d");
  assert.equal(choose({ state: "model" }), "b");
  assert.equal(choose({ state: "edited" }), "d");
  assert.equal(choose({ state: "open" }), "c");
  assert.equal(choose({ state: "found", in: "limits" }), "bd"); // an edited cell has its words
  assert.equal(choose({ state: "nonsense" }), "abcd");
  assert.equal(hasState(undefined, "open"), true);
});

test("a cell says its values, or the words of the paper, or the person's", () => {
  const [a, b, , d] = make();
  assert.equal(getText(b.cells.get("limits")), "A small sample");
  assert.equal(getText(d.cells.get("size")), "5 km\n23 km");
  assert.equal(getText(d.cells.get("limits")), "My own words");
  assert.equal(getText(a.cells.get("limits")), "");
});

test("the waiting cells of the papers that are asked are running, and wait again afterwards", () => {
  const rows = make();
  assert.deepEqual(
    markRunning(rows, ["c", "a"]).map(({ cell }) => [cell.paper, cell.column, cell.state]),
    [["c", "limits", "running"]],
  );
  assert.deepEqual(markRunning(rows, ["c"]), []);
  assert.deepEqual(
    markRunning(rows, []).map(({ cell }) => cell.state),
    ["waiting"],
  );
});

test("a cell that is asked again has its state back if nothing came of it", () => {
  const rows = make();
  const asked = cell("b", "size", [metres], { state: "running" });
  assert.equal(applyCells(rows, [asked]).length, 1);
  assert.deepEqual(markRunning(rows, [], [asked]), []); // it is still being asked
  assert.deepEqual(
    markRunning(rows, []).map(({ cell }) => [cell.paper, cell.state]),
    [["b", "found"]],
  );
});

test("what is wanted comes back from an address as it was", () => {
  const query = { q: "a b", state: "differ", in: "size", sort: "-size" };
  assert.deepEqual(formatWanted(parseWanted(query)), query);
  assert.deepEqual(formatWanted(parseWanted({})), { q: "", state: "", in: "", sort: "" });
  const address = "#tables/0123456789abcdef?sort=-year";
  assert.equal(formatPlace(parsePlace(address)), address);
  assert.equal(parsePlace("#tables/<script>").id, "");
  assert.equal(formatPlace({ ...parsePlace("#c/x"), view: "search" }), "#search"); // an id of another view is none here
});

test("a plot counts values in bars of equal width", () => {
  const plot = makePlot([1, 2, 2, 3, 10, Number.NaN]);
  assert.deepEqual(plot, {
    counts: [1, 2, 1, 0, 0, 0, 0, 0, 0, 1],
    from: 1,
    to: 10,
    middle: 2,
    count: 5,
    isLog: false,
  });
  assert.equal(describePlot(plot, { unit: "km" }), "5 values from 1 to 10, median 2, km");
  assert.equal(makePlot([3, 3, 3]), null);
  assert.equal(makePlot([]), null);
});

test("values of very different sizes are on a logarithmic scale, which is said", () => {
  const plot = makePlot([10, 12, 100, 90, 20, 30, 40, 1_000_000]);
  assert.equal(plot.isLog, true);
  assert.equal(
    plot.counts.reduce((sum, count) => sum + count),
    8,
  );
  assert.match(describePlot(plot), /logarithmic/);
  assert.equal(makePlot([-5, 0, 1, 2, 9999]).isLog, false); // zero has no logarithm
});

test("years are no quantities", () => {
  assert.equal(describePlot(makePlot([1998, 2014]), { isYear: true }), "2 values from 1998 to 2014, median 2006");
  assert.deepEqual(makePlot([1998, 1998, 2000]).counts, [2, 0, 1]); // a bar for each year
});

const GRID = { rows: 5, columns: 4, page: 3, hasHead: true };
const press = (row, column, key, ctrlKey = false, grid = GRID) => {
  const to = findMove({ row, column }, { key, ctrlKey, metaKey: false }, grid);
  return to && [to.row, to.column];
};

test("arrows go one cell on, from the header down, and stop at the ends", () => {
  assert.deepEqual(press(0, 0, "ArrowUp"), [-1, 0]);
  assert.deepEqual(press(-1, 2, "ArrowUp"), [-1, 2]);
  assert.deepEqual(press(4, 3, "ArrowDown"), [4, 3]);
  assert.deepEqual(press(4, 3, "ArrowRight"), [4, 3]);
  assert.deepEqual(press(0, 0, "ArrowUp", false, { ...GRID, hasHead: false }), [0, 0]);
  assert.equal(press(0, 0, "a"), null);
});

test("Home and End go along a row, with Ctrl to the corners, and pages by what is in view", () => {
  assert.deepEqual(press(2, 2, "Home"), [2, 0]);
  assert.deepEqual(press(2, 2, "End"), [2, 3]);
  assert.deepEqual(press(2, 2, "Home", true), [-1, 0]);
  assert.deepEqual(press(2, 2, "End", true), [4, 3]);
  assert.deepEqual(press(1, 2, "PageDown"), [4, 2]);
  assert.deepEqual(press(1, 2, "PageUp"), [0, 2]);
});

test("ten thousand cells are sorted and searched within a frame", () => {
  const many = Array.from({ length: 1000 }, (_, at) => row(`p${at}`, `Paper ${at}`, 1950 + (at % 70)));
  const cells = many.flatMap(({ paper }, at) =>
    Array.from({ length: 10 }, (_, column) =>
      cell(paper, `c${column}`, [find(`words ${at * column} of a paper`, { number: at % 37 })]),
    ),
  );
  const rows = makeRows({ rows: many, cells });
  const columns = COLUMNS.slice(0, 1).map((column) => ({ ...column, id: "c0" }));
  chooseRows(rows, parseWanted({ q: "words" })); // folded once
  const times = [1, 2, 3].map(() => {
    const start = performance.now();
    assert.equal(chooseRows(rows, parseWanted({ q: "8991" })).length, 1); // 999 times 9
    assert.equal(sortRows(rows, columns, parseWanted({ sort: "-c0" }))[0].cells.get("c0").findings[0].number, 36);
    return performance.now() - start;
  });
  assert.ok(Math.min(...times) < 50, `${times} ms`);
});
