import assert from "node:assert/strict";
import test from "node:test";
import {
  checkZoteroLink,
  formatMark,
  joinLines,
  shortenAtWord,
  splitMarked,
} from "../../folio/web/static/base/text.js";

test("text of a paper cannot pass for a citation", () => {
  assert.equal(joinLines("As shown [Otter 2014, p. 3] before"), "As shown (Otter 2014, p. 3) before");
  assert.equal(joinLines("a [1] b"), "a [1] b");
});

test("characters that hide something are shown", () => {
  assert.equal(joinLines("a\u202eb\u0000c"), "a\ufffdb\ufffdc");
});

test("a mark is found where spaces were joined", () => {
  assert.deepEqual(splitMarked("a b c", "a  b\nc", [[3, 4]]), [
    ["a ", false],
    ["b", true],
    [" c", false],
  ]);
});

test("only links that open a page in Zotero are kept", () => {
  assert.equal(checkZoteroLink("javascript:alert(1)"), "");
  const link = "zotero://open-pdf/library/items/ABCD2345?page=3";
  assert.equal(checkZoteroLink(link), link);
});

test("a long line ends at a word", () => {
  assert.equal(shortenAtWord("one two three four", 12), "one two …");
  assert.equal(formatMark({ shown: "[Otter 2014, p. 3]", page: 3 }), "[Otter 2014, p. 3]");
});
