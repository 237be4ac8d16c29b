import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { parseEvent } from "../../folio/web/static/base/api.js";
import { formatOptions, parseOptions } from "../../folio/web/static/base/options.js";
import { parts, t, TEXTS } from "../../folio/web/static/base/strings.js";
import { Value } from "../../folio/web/static/base/value.js";

const STATIC = new URL("../../folio/web/static/", import.meta.url).pathname;
const files = readdirSync(STATIC, { recursive: true }).filter((name) => /\.(js|html)$/.test(name));
const code = files
  .filter((name) => !name.endsWith("strings.js"))
  .map((name) => readFileSync(join(STATIC, name), "utf8"));

test("each key of the texts is used, and each used key has a text", () => {
  const all = code.join("\n");
  // The last part of a key may be a value: `reader.copy.${format}`
  const stem = (key) => `\`${key.slice(0, key.lastIndexOf("."))}.\${`;
  const unused = Object.keys(TEXTS).filter((key) => !all.includes(`"${key}"`) && !all.includes(stem(key)));
  assert.deepEqual(unused, []);
});

test("a text that counts things has a form for one", () => {
  const counting = Object.keys(TEXTS).filter((key) => /\{count\} (more )?\w+s\b/.test(TEXTS[key]));
  assert.deepEqual(counting, []);
  assert.equal(t("facet.author.more", { count: 1 }), "1 more author");
  assert.equal(t("facet.author.more", { count: 2 }), "2 more authors");
});

test("values stand where the text names them", () => {
  assert.equal(t("pages", { first: "3", last: "4" }), "pp. 3–4");
  assert.deepEqual(parts("copied", { what: "x{y}" }), ["x{y}", " copied."]);
});

test("a value is told of each change, once", () => {
  const value = new Value(1);
  const heard = [];
  const end = value.watch((now, before) => heard.push([now, before]));
  value.set(2);
  value.set(2);
  end();
  value.set(3);
  assert.deepEqual(heard, [
    [1, 1],
    [2, 1],
  ]);
  assert.equal(value.get(), 3);
});

test("options come back from an address as they were", () => {
  const options = {
    papers: ["a", "b"],
    filters: { year: "2014-", cited_by: "A, B & C" },
    topK: 7,
    reranker: false,
    style: "report",
    model: "llama3.1:8b",
    deep: true,
    instruction: "0123456789abcdef",
  };
  assert.deepEqual(parseOptions(formatOptions(options)), options);
  assert.deepEqual(formatOptions(parseOptions({ k: "999", style: "x", other: "y" })), formatOptions(parseOptions({})));
});

test("an event of the server has its name and its data; a comment is none", () => {
  assert.deepEqual(parseEvent('event: done\r\ndata: {"a":\r\ndata: 1}'), { event: "done", data: { a: 1 } });
  assert.equal(parseEvent(": still here"), null);
});
