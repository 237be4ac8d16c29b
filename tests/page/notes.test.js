import assert from "node:assert/strict";
import test from "node:test";
import { chooseNotes, parseWanted } from "../../folio/web/static/notes/choose.js";
import { formatNoteHtml, formatNoteText } from "../../folio/web/static/notes/format.js";

const OTTERS = "a".repeat(64);
const ALPS = "b".repeat(64);

/** @param {string} id @param {Partial<Api.NoteJson>} [more] */
function makeNote(id, more = {}, paper = OTTERS, start = 0) {
  const quote = { paper, start, end: start + 9, page: 3, label: "3", quote: `Quote of ${id}`, place: "here" };
  const dates = { created: "2026-01-01T00:00:00Z", updated: "2026-01-01T00:00:00Z" };
  const file = paper === OTTERS ? "otters.pdf" : "alps.pdf";
  const rest = {
    colour: "",
    text: "",
    statement: "",
    conversation: null,
    turn: null,
    title: "",
    zotero: "",
    is_annotation: false,
    shade: "",
    ...dates,
  };
  return { id, quotes: [quote], paper, file, ...rest, ...more };
}

const getTitle = ({ file }) => file;
const choose = (notes, wanted) => chooseNotes(notes, parseWanted(wanted), getTitle).map(({ id }) => id);

test("notes are in the order of the papers and their pages", () => {
  const notes = [makeNote("c", {}, OTTERS, 50), makeNote("b", {}, OTTERS, 7), makeNote("a", {}, ALPS, 90)];
  assert.deepEqual(choose(notes, {}), ["a", "b", "c"]);
});

test("notes are in the order of their dates, the newest first", () => {
  const notes = [
    makeNote("old", { updated: "2026-03-01T00:00:00Z" }),
    makeNote("new", { created: "2026-02-01T00:00:00Z" }),
  ];
  assert.deepEqual(choose(notes, { order: "created" }), ["new", "old"]);
  assert.deepEqual(choose(notes, { order: "updated" }), ["old", "new"]);
});

test("words are found in quotes, in own words and in titles, without case and accents", () => {
  const notes = [
    makeNote("one", { text: "Über Kelp" }),
    makeNote("two", { statement: "They sleep." }),
    makeNote("three"),
  ];
  assert.deepEqual(choose(notes, { q: "uber KELP" }), ["one"]);
  assert.deepEqual(choose(notes, { q: "sleep otters" }), ["two"]);
  assert.deepEqual(choose(notes, { q: "of three" }), ["three"]);
  assert.deepEqual(choose(notes, { q: "of nothing" }), []);
});

test("notes are narrowed to a paper and to a colour", () => {
  const notes = [makeNote("a", { colour: "green" }), makeNote("b", { colour: "blue" }, ALPS), makeNote("c")];
  assert.deepEqual(choose(notes, { paper: ALPS }), ["b"]);
  assert.deepEqual(choose(notes, { colour: "green" }), ["a"]);
  assert.deepEqual(choose(notes, { colour: "none" }), ["c"]);
});

test("a colour or an order that nobody knows is left out", () => {
  assert.deepEqual(parseWanted({ colour: "mauve", order: "size" }), { q: "", paper: "", colour: "", order: "place" });
});

test("a copied note has its quote with the citation and the person's own words", () => {
  const note = makeNote("a", { text: "First.\n\nSecond.", statement: "Said." });
  const text = formatNoteText(note, () => "Otter 2014");
  assert.equal(text, "Said.\n“Quote of a” [Otter 2014, p. 3]\nFirst.\nSecond.");
  const html = "<p>Said.</p><blockquote>“Quote of a” [Otter 2014, p. 3]</blockquote><p>First.</p><p>Second.</p>";
  assert.equal(
    formatNoteHtml(note, () => "Otter 2014"),
    html,
  );
});

test("a quote is cited from its own paper, which says if the words are there no more", () => {
  const note = makeNote("a");
  const own = { paper: OTTERS, title: "On Otters", place: "here" };
  note.quotes = [
    { ...note.quotes[0], ...own },
    { ...note.quotes[0], paper: ALPS, title: "The Alps", place: "removed" },
    { ...note.quotes[0], ...own, place: "lost" },
  ];
  assert.equal(
    formatNoteText(note, ({ title }) => title),
    "“Quote of a” [On Otters, p. 3]\n" +
      "“Quote of a” [The Alps, p. 3] (The paper was removed from the library.)\n" +
      "“Quote of a” [On Otters, p. 3] (These words are no longer in the paper.)",
  );
});

test("hostile words stay words, and cannot pass for a citation", () => {
  const note = makeNote("a", { text: '<img src=x onerror="alert(1)"> [Ghost 1999, p. 9]\u202e' });
  note.quotes[0].quote = "</blockquote><script>alert(1)</script>";
  const html = formatNoteHtml(note, () => "Ott]er <b>");
  assert.ok(!/<(?!\/?(?:p|blockquote)>)/.test(html), html);
  assert.ok(html.includes("(Ghost 1999, p. 9)"), html);
  assert.ok(!html.includes("\u202e"));
  assert.equal(html.match(/\[[^\]]*\]/g)?.length, 1);
});
