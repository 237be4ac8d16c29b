// What the papers can be narrowed to: years, authors, venues, tags, collections, and what needs a look; with counts.

import { el, isolate, makeButton, showFault } from "../base/dom.js";
import { formatNumber, t } from "../base/strings.js";
import { FACETS, FLAGS, listCounts } from "./catalog.js";

/** @typedef {import("./catalog.js").Wanted} Wanted */
/** @typedef {import("./catalog.js").Counts} Counts */
/** @typedef {import("./catalog.js").Facet} Facet */
/** @typedef {import("./catalog.js").Flag} Flag */
/** @typedef {import("../base/strings.js").Key} Key */

const FEW = 6; // values of a facet
const MANY = 100;

/** @type {Record<Facet, {name: Key, more: Key}>} */
const TEXTS = {
  author: { name: "facet.author", more: "facet.author.more" },
  venue: { name: "facet.venue", more: "facet.venue.more" },
  tag: { name: "facet.tag", more: "facet.tag.more" },
  collection: { name: "facet.collection", more: "facet.collection.more" },
};
/** @type {Record<Flag, Key>} */
const FLAG_TEXTS = { unsure: "facet.unsure", retracted: "facet.retracted", unread: "facet.unread" };

export class Facets {
  /** @type {Set<Facet>} */
  #long = new Set(); // those that show many values
  /** @type {{wanted: Wanted, counts: Counts} | null} */
  #shown = null;

  /** @param {(change: Partial<Wanted>) => void} narrow */
  constructor(narrow) {
    this.narrow = narrow;
    this.from = this.#makeYear("facet.from");
    this.to = this.#makeYear("facet.to");
    this.flags = el("div", { class: "facet-values" });
    /** @type {Record<Facet, HTMLElement>} */
    this.groups = { author: makeGroup(), venue: makeGroup(), tag: makeGroup(), collection: makeGroup() };
    this.clear = makeButton("button quiet", () => this.#clear(), t("facet.clear"));
    const years = el("div", { class: "facet-years" }, this.from, "–", this.to);
    this.node = el(
      "div",
      { class: "facets", role: "group", "aria-label": t("facet.all") },
      this.clear,
      el("fieldset", { class: "facet" }, el("legend", {}, t("facet.show")), this.flags),
      el("fieldset", { class: "facet" }, el("legend", {}, t("facet.years")), years),
      FACETS.map((facet) => this.groups[facet]),
    );
  }

  /** @param {Wanted} wanted @param {Counts} counts @param {boolean} isNarrowed */
  show(wanted, counts, isNarrowed) {
    this.#shown = { wanted, counts };
    this.clear.hidden = !isNarrowed;
    for (const [input, year] of /** @type {const} */ ([
      [this.from, wanted.from],
      [this.to, wanted.to],
    ])) {
      if (document.activeElement === input || input.getAttribute("aria-invalid") === "true") continue;
      input.value = String(year ?? "");
    }
    const flags = FLAGS.map((flag) => {
      const isChosen = wanted.flags.includes(flag);
      const flip = () => this.narrow({ flags: toggle(wanted.flags, flag) });
      return makeChoice(t(FLAG_TEXTS[flag]), counts.flags[flag], isChosen, flip);
    });
    replace(this.flags, flags);
    for (const facet of FACETS) this.#showGroup(facet, wanted, counts);
  }

  /** @param {Facet} facet @param {Wanted} wanted @param {Counts} counts */
  #showGroup(facet, wanted, counts) {
    const chosen = wanted.values[facet];
    const isLong = this.#long.has(facet);
    const { values, more } = listCounts(counts[facet], chosen, isLong ? MANY : FEW);
    const choices = values.map(([value, count]) =>
      makeChoice(value, count, chosen.includes(value), () =>
        this.narrow({ values: { ...wanted.values, [facet]: toggle(chosen, value) } }),
      ),
    );
    const showMore = () => {
      this.#long.add(facet);
      if (this.#shown) this.#showGroup(facet, this.#shown.wanted, this.#shown.counts);
    };
    const canShow = more > 0 && !isLong;
    const button = canShow ? makeButton("button quiet", showMore, t(TEXTS[facet].more, { count: more })) : null;
    const rest = more > 0 && isLong ? el("p", { class: "about" }, t("facet.rest", { count: more })) : null;
    this.groups[facet].hidden = !values.length;
    const legend = el("legend", {}, t(TEXTS[facet].name));
    replace(this.groups[facet], [legend, ...choices, ...[button, rest].filter((node) => node !== null)]);
  }

  /** @param {Key} key */
  #makeYear(key) {
    const change = () => {
      const wrong = [this.from, this.to].filter((input) => !/^(\d{4})?$/.test(input.value.trim()));
      for (const input of [this.from, this.to]) {
        showFault(input, wrong.includes(input) ? t("facet.year.wrong") : "", this.from.parentElement ?? input);
      }
      if (!wrong.length) this.narrow({ from: readYear(this.from), to: readYear(this.to) });
    };
    return el("input", {
      id: key.replace(".", "-"),
      type: "text",
      inputmode: "numeric",
      maxlength: "4",
      class: "year",
      placeholder: t("facet.year"),
      "aria-label": t(key),
      autocomplete: "off",
      onchange: change,
    });
  }

  #clear() {
    /** @type {Partial<Wanted>} */
    const all = {
      words: "",
      from: null,
      to: null,
      flags: [],
      values: { author: [], venue: [], tag: [], collection: [] },
    };
    for (const input of [this.from, this.to]) showFault(input, "");
    this.narrow(all);
    this.from.focus();
  }
}

const makeGroup = () => el("fieldset", { class: "facet" });

/** @param {HTMLInputElement} input */
const readYear = (input) => Number(input.value) || null;

/** @template T @param {T[]} values @param {T} value */
const toggle = (values, value) =>
  values.includes(value) ? values.filter((other) => other !== value) : [...values, value];

/** @param {string} name @param {number} count @param {boolean} isChosen @param {() => void} flip */
function makeChoice(name, count, isChosen, flip) {
  const box = el("input", { type: "checkbox", value: name, checked: isChosen, onchange: flip });
  const size = el("span", { class: "size" }, formatNumber(count));
  return el("label", { class: "facet-value" }, box, isolate(name), size);
}

/**
 * Replaces what is in a group; a box that had the focus has it again.
 * @param {HTMLElement} group @param {Node[]} nodes
 */
function replace(group, nodes) {
  const focused = document.activeElement;
  const value = focused instanceof HTMLInputElement && group.contains(focused) ? focused.value : null;
  const wasInside = group.contains(focused);
  group.replaceChildren(...nodes);
  if (!wasInside) return;
  const boxes = [...group.querySelectorAll("input")];
  (boxes.find((box) => box.value === value) ?? boxes.at(-1))?.focus();
}
