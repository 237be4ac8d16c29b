// A bibliography: what its import would change is shown before it is taken.

import * as api from "../base/api.js";
import { el, isolate, makeButton, showToast } from "../base/dom.js";
import { t } from "../base/strings.js";
import { makePart } from "./part.js";

const SHOWN = 200; // entries in a list

/** The fields of a paper that have a name. @type {Record<string, import("../base/strings.js").Key>} */
const FIELDS = {
  title: "settings.field.title",
  authors: "settings.field.authors",
  year: "settings.field.year",
  venue: "settings.field.venue",
  doi: "settings.field.doi",
  abstract: "settings.field.abstract",
  citation_key: "settings.field.citation_key",
};

/** @param {string[]} changes */
function describeChanges(changes) {
  const named = changes.flatMap((name) => (FIELDS[name] ? [t(FIELDS[name])] : []));
  const others = changes.length - named.length;
  return [...named, ...(others ? [t("settings.field.others", { count: others })] : [])].join(", ");
}

export class BibliographyPart {
  constructor() {
    this.input = el("input", {
      type: "file",
      id: "bibliography",
      class: "unseen",
      accept: ".bib,.bibtex,.biblatex,.json",
    });
    this.input.onchange = () => this.#preview();
    this.preview = el("div", { class: "bib-preview", role: "status" });
    const { node, run } = makePart(
      "bibliography",
      "settings.bib",
      el("p", { class: "about" }, t("settings.bib.text")),
      el("label", { class: "button file-button" }, this.input, t("settings.bib.choose")),
      this.preview,
    );
    this.node = node;
    this.run = run;
  }

  async #preview() {
    const file = this.input.files?.[0];
    this.input.value = ""; // otherwise the same file could not be chosen again
    this.preview.replaceChildren();
    if (file) await this.run(async () => this.#show(file, await api.sendBibliography(file, { take: false })));
  }

  /** @param {File} file @param {Api.BibliographyJson} found */
  #show(file, found) {
    const take = () =>
      this.run(async () => {
        const taken = await api.sendBibliography(file, { take: true });
        this.preview.replaceChildren();
        showToast(t("settings.bib.taken", { count: taken.count_changed }));
        this.input.focus();
      });
    const counts = [
      t("settings.bib.matched", { count: found.count_matched }),
      t("settings.bib.changed", { count: found.count_changed }),
      t("settings.bib.unmatched", { count: found.count_unmatched }),
      ...(found.count_withdrawn ? [t("settings.bib.withdrawn", { count: found.count_withdrawn })] : []),
    ];
    const matched = found.matched.map(({ key, title, changes }) =>
      el(
        "li",
        {},
        isolate(title),
        el("span", { class: "about" }, isolate(key)),
        el("span", { class: "about" }, changes.length ? describeChanges(changes) : t("settings.bib.same")),
      ),
    );
    const unmatched = found.unmatched.map(({ key, title, why }) =>
      el("li", {}, isolate(title || key), el("span", { class: "about" }, isolate(why || key))),
    );
    const problems = found.problems.map((problem) => el("li", {}, isolate(problem)));
    const isNew = found.count_changed || found.count_withdrawn;
    const button = makeButton("button primary", take, t("settings.bib.take"));
    const leave = makeButton("button", () => this.#leave(), t("cancel"));
    this.preview.replaceChildren(
      el("h3", {}, isolate(found.name)),
      el("p", {}, `${counts.join(", ")}.`),
      renderList(t("settings.bib.list.matched"), matched, true),
      renderList(t("settings.bib.list.unmatched"), unmatched),
      renderList(t("settings.bib.list.problems"), problems),
      isNew ? el("div", { class: "row" }, leave, button) : el("p", { class: "about" }, t("settings.bib.nothing")),
    );
  }

  #leave() {
    this.preview.replaceChildren();
    this.input.focus();
  }
}

/** @param {string} title @param {HTMLElement[]} items @param {boolean} [isOpen] */
function renderList(title, items, isOpen = false) {
  if (!items.length) return "";
  const more = items.length - SHOWN;
  const rest = more > 0 ? [el("li", { class: "none" }, t("settings.bib.more", { count: more }))] : [];
  return el(
    "details",
    { open: isOpen },
    el("summary", {}, `${title} (${items.length})`),
    el("ul", { class: "bib-entries" }, ...items.slice(0, SHOWN), ...rest),
  );
}
