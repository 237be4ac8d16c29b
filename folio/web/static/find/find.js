// Finding papers at services on the internet, where the server may ask them. The address has the query and the filters.

import * as api from "../base/api.js";
import { el, formatCommands, makeButton, renderMessage, renderProblem } from "../base/dom.js";
import { place, setQuery } from "../base/router.js";
import { health } from "../base/state.js";
import { t } from "../base/strings.js";
import { addAll, countAddable, renderWork } from "./works.js";

/** @typedef {import("../base/strings.js").Key} Key */

/** @type {Record<string, {name: Key, options: [string, Key | ""][]}>} a value without a text is its own text */
const CHOICES = {
  source: {
    name: "find.source",
    options: [
      ["", "find.source.any"],
      ["openalex", "find.source.openalex"],
      ["semanticscholar", "find.source.semanticscholar"],
      ["arxiv", "find.source.arxiv"],
      ["europepmc", "find.source.europepmc"],
    ],
  },
  sort: {
    name: "find.sort",
    options: [
      ["relevance", "find.sort.relevance"],
      ["date", "find.sort.date"],
      ["citations", "find.sort.citations"],
    ],
  },
  max: {
    name: "find.show",
    options: [
      ["20", ""],
      ["50", ""],
      ["100", ""],
    ],
  },
};

/** @param {string} name of a filter */
function makeChoice(name) {
  const options = CHOICES[name].options.map(([value, text]) => el("option", { value }, text ? t(text) : value));
  return el("select", { id: `find-${name}` }, options);
}

/** @param {string} name @param {Record<string, string>} attributes */
const makeNumber = (name, attributes) => el("input", { type: "number", id: `find-${name}`, step: "1", ...attributes });

/** @param {Key} key @param {Node} field */
const label = (key, field) => el("label", { class: "inline" }, `${t(key)} `, field);

class FindView {
  /** @type {AbortController | null} */
  asking = null;
  wanted = ""; // what the address asks for
  asked = ""; // what was asked last, to know whether the address has changed

  /** @param {HTMLElement} root */
  constructor(root) {
    this.note = el("p", { class: "lead", id: "find-note" }, t("find.checking"));
    this.query = el("input", {
      type: "search",
      id: "find-query",
      maxlength: "500",
      placeholder: t("find.query"),
      autocomplete: "off",
      "aria-keyshortcuts": "/",
    });
    this.source = makeChoice("source");
    this.sort = makeChoice("sort");
    this.max = makeChoice("max");
    this.since = makeNumber("since", { min: "1800", max: "2100", placeholder: t("find.since.example") });
    this.cited = makeNumber("cited", { min: "0", max: "10000000", placeholder: "0" });
    this.open = el("input", { type: "checkbox", id: "find-open" });
    this.form = this.#buildForm();
    this.status = el("p", { class: "status", id: "find-status", role: "status" });
    this.addAll = makeButton("button quiet", () => this.#addAll());
    this.addAll.id = "add-all";
    this.addAll.hidden = true;
    this.notices = el("ul", { class: "notices", id: "find-notices" });
    this.problem = el("div", { id: "find-problem" });
    this.works = el("ol", { class: "works", id: "found", "aria-label": t("find.works") });
    const parts = [
      el("h1", {}, t("view.find.title")),
      this.note,
      this.form,
      el("div", { class: "find-status" }, this.status, this.addAll),
      this.notices,
      this.problem,
      this.works,
    ];
    root.append(el("div", { class: "scroll" }, el("div", { class: "reading" }, parts)));
    health.watch((now) => this.#followHealth(now));
  }

  #buildForm() {
    const filters = el(
      "div",
      { class: "find-filters" },
      label(CHOICES.source.name, this.source),
      label("find.since", this.since),
      label("find.cited", this.cited),
      label(CHOICES.sort.name, this.sort),
      label(CHOICES.max.name, this.max),
      el("label", { class: "check" }, this.open, t("find.open")),
    );
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#ask();
    };
    const change = (/** @type {Event} */ event) => {
      this.#adaptFilters();
      if (event.target !== this.query && this.works.childElementCount) this.#ask();
    };
    return el(
      "form",
      {
        class: "searching",
        id: "find",
        role: "search",
        "aria-label": t("find.name"),
        hidden: true,
        onsubmit: submit,
        onchange: change,
      },
      el("label", { class: "unseen", for: "find-query" }, t("find.query")),
      this.query,
      el("button", { type: "submit", class: "button primary" }, t("find")),
      filters,
    );
  }

  /** @param {Api.Health | null} now */
  #followHealth(now) {
    if (!now) return;
    this.note.replaceChildren(...formatCommands(now.network));
    this.form.hidden = !now.online;
    if (place.get().view === "find") this.#findWanted();
  }

  /** Shows what the address asks for. */
  follow() {
    const { view, query } = place.get();
    if (view !== "find") return;
    if (document.activeElement !== this.query) this.query.value = query.q ?? "";
    for (const name of /** @type {const} */ (["source", "since", "cited"])) this[name].value = query[name] ?? "";
    this.sort.value = query.sort || "relevance";
    this.max.value = query.max || "20";
    this.open.checked = query.open === "1";
    this.#adaptFilters();
    this.wanted = JSON.stringify(this.#readFields());
    this.#findWanted();
  }

  /** Asks what the address asks for, once it is known that services may be asked. What is typed meanwhile stays. */
  #findWanted() {
    if (!health.get()?.online || this.wanted === this.asked) return;
    this.asked = this.wanted;
    this.#find();
  }

  /** The fields as the address has them. @returns {Record<string, string>} */
  #readFields() {
    return {
      q: this.query.value.trim(),
      source: this.source.value,
      since: this.since.value,
      cited: this.cited.value,
      sort: this.sort.value === "relevance" ? "" : this.sort.value,
      max: this.max.value === "20" ? "" : this.max.value,
      open: this.open.checked ? "1" : "",
    };
  }

  #ask() {
    const fields = this.#readFields();
    if (!fields.q || !this.form.reportValidity()) return;
    this.asked = ""; // Enter asks again
    setQuery(fields, { replace: !place.get().query.q });
    this.follow();
  }

  async #find() {
    this.asking?.abort();
    this.#showWorks([]);
    this.notices.replaceChildren();
    this.problem.replaceChildren();
    this.status.textContent = "";
    const { q: query, source, since, cited, open } = this.#readFields();
    if (!query) return;
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.status.textContent = t("find.working");
    this.status.classList.add("working");
    const wanted = { source, since, open_access: open === "1", min_cited: cited };
    try {
      const limits = { max: this.max.value, sort: this.sort.value };
      const { works, notices } = await api.discover({ query, ...wanted, ...limits }, signal);
      const here = works.filter((work) => work.paper).length;
      const count = t(here ? "find.count.here" : "find.count", { count: works.length, here });
      this.status.textContent = works.length ? count : t("find.none");
      this.notices.replaceChildren(...notices.map((text) => el("li", { class: "note" }, renderMessage(text))));
      this.#showWorks(works);
    } catch (thrown) {
      if (api.isAbort(thrown)) return;
      this.status.textContent = "";
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown), () => this.#find()));
    } finally {
      if (!signal.aborted) this.status.classList.remove("working");
    }
  }

  /** @param {Api.WorkJson[]} works */
  #showWorks(works) {
    this.works.replaceChildren(...works.map((work) => renderWork(work, { canAdd: true })));
    const count = countAddable(this.works);
    this.addAll.hidden = count < 2;
    this.addAll.textContent = t("find.add.all", { count });
  }

  #addAll() {
    addAll(this.works);
    this.addAll.hidden = true;
    this.query.focus();
  }

  /** arXiv does not count citations. */
  #adaptFilters() {
    const isCounted = this.source.value !== "arxiv";
    this.cited.disabled = !isCounted;
    for (const option of this.sort.options) option.disabled = option.value === "citations" && !isCounted;
    if (isCounted) return;
    this.cited.value = "";
    if (this.sort.value === "citations") this.sort.value = "relevance";
  }
}

/** @param {HTMLElement} root */
export function setUpFind(root) {
  const view = new FindView(root);
  place.watch(() => view.follow());
}
