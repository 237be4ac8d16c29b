import assert from "node:assert/strict";
import test from "node:test";
import { buildMarkPattern, joinPassage, shortenPassage, splitMarks } from "../../folio/web/static/search/marks.js";

const mark = (text, query) =>
  splitMarks(text, buildMarkPattern(query))
    .map(([part, isMarked]) => (isMarked ? `*${part}*` : part))
    .join("");

test("the words of a query are marked in their forms, common words are not", () => {
  assert.equal(mark("Modelling the model of models", "the models"), "*Modelling* the *model* of *models*");
  assert.equal(mark("a otter", "of the"), "a otter");
  assert.equal(mark("C++ and (more", "c++ (more"), "C++ and (*more*");
});

test("the lines of a passage are joined, its paragraphs are not", () => {
  assert.equal(joinPassage(" one\ntwo\n\n\nthree "), "one two\nthree");
});

test("a long passage is cut at the end of a word", () => {
  const short = shortenPassage("word ".repeat(200));
  assert.ok(short.length <= 421 && short.endsWith("word …"), short.slice(-10));
  assert.equal(shortenPassage("short"), "short");
});
