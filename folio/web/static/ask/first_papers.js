// The first screen of a Folio without papers: drop PDFs, choose a folder, or take what Zotero has.

import { byId, el, isolate, makeButton, makeIcon } from "../base/dom.js";
import { parts, t } from "../base/strings.js";
import { addFolder, followZotero, loadZotero, zotero } from "../settings/folders.js";
import { makeRun } from "../settings/part.js";
import { loadSettings, settings } from "../settings/state.js";

/** @param {number} megabytes of a file, at most */
export function renderFirstPapers(megabytes) {
  const choose = el("span", { class: "as-link" }, t("ask.drop.choose"));
  const more = el("div", { class: "start-more" });
  const problem = el("div", {});
  const run = makeRun(problem);
  const render = () => more.replaceChildren(...renderOtherWays(run));
  // Only the person at this computer chooses folders of it.
  loadSettings()
    .then(() => (settings.get()?.changeable ? loadZotero() : undefined))
    .then(render, render);
  return [
    el("h1", {}, t("ask.first")),
    el("p", { class: "lead" }, t("ask.first.text")),
    el(
      "div",
      { class: "start-ways" },
      makeButton(
        "drop",
        () => byId("files").click(),
        el("span", { class: "drop-title" }, parts("ask.drop", { choose })),
        el("span", { class: "drop-note" }, t("ask.drop.note", { megabytes })),
      ),
      more,
      problem,
    ),
  ];
}

/** @param {(act: () => Promise<unknown>) => void} run */
function renderOtherWays(run) {
  if (!settings.get()?.changeable) return [];
  const folder = makeButton("button", () => run(addFolder), makeIcon("folder"), t("ask.first.folder"));
  const ways = [el("div", { class: "way" }, folder, el("p", { class: "about" }, t("ask.first.folder.text")))];
  const found = zotero.get();
  if (found?.folder && !found.is_followed) {
    const use = makeButton("button", () => run(() => followZotero(true)), t("ask.first.zotero", { count: found.pdfs }));
    const place = isolate(found.folder, { class: "path" });
    ways.push(el("div", { class: "way" }, use, el("p", { class: "about" }, parts("ask.first.zotero.text", { place }))));
  }
  return ways;
}
