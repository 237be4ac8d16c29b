// All notes of the library: found, narrowed, ordered, edited and exported. The notes of one paper as a pane.

import * as api from "../base/api.js";
import { announce, el, hideVisually, isolate, makeButton, makeIcon, renderProblem } from "../base/dom.js";
import { onEvent } from "../base/events.js";
import { showFailure } from "../base/failure.js";
import { inTurn } from "../base/pace.js";
import { linkTo, place, setQuery } from "../base/router.js";
import { getProjectName, getTitle, library, projects } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";
import { keepUnchanged } from "../base/value.js";
import { chooseNotes, COLOURS, ORDERS, parseWanted } from "./choose.js";
import { addNotesToProject, copyNotes, NoteList } from "./note_list.js";
import { deleteNotes, leaving } from "./removal.js";

/** @typedef {Api.NoteJson} Note */

const EXPORTS = /** @type {const} */ (["md", "docx", "bib"]);

/** The title of a note's paper. @param {Note} note */
const getPaperTitle = ({ paper, title, file }) => getTitle({ paper, title, file });

/** Notes with one of them as it is now, or with a new one. @param {Note[]} notes @param {Note} note */
const withNote = (notes, note) =>
  notes.some(({ id }) => id === note.id) ? notes.map((each) => (each.id === note.id ? note : each)) : [...notes, note];

/** @param {"md" | "docx" | "bib"} kind @param {Note[]} notes */
async function exportNotes(kind, notes) {
  try {
    const blob = await api.exportNotes(
      kind,
      notes.map(({ id }) => id),
    );
    const href = URL.createObjectURL(blob);
    el("a", { href, download: `folio-notes.${kind}` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  } catch (thrown) {
    showFailure(thrown);
  }
}

class NotesView {
  /** @type {Note[]} */
  notes = [];
  isLoaded = false;
  isStale = true; // notes have changed since they were loaded
  project = ""; // whose notes these are; "" for all

  /** @param {HTMLElement} root */
  constructor(root) {
    const narrow = (/** @type {Record<string, string>} */ change) => setQuery(change);
    this.query = el("input", {
      type: "search",
      placeholder: t("notes.query"),
      "aria-label": t("notes.query"),
      autocomplete: "off",
      "aria-keyshortcuts": "/",
      oninput: () => narrow({ q: this.query.value }),
    });
    this.paper = el("select", { "aria-label": t("notes.paper"), onchange: () => narrow({ paper: this.paper.value }) });
    this.colour = el(
      "select",
      { "aria-label": t("reader.note.colour"), onchange: () => narrow({ colour: this.colour.value }) },
      el("option", { value: "" }, t("notes.colour.all")),
      COLOURS.map((colour) => el("option", { value: colour }, t(`reader.colour.${colour}`))),
      el("option", { value: "none" }, t("notes.uncoloured")),
    );
    const setOrder = () => narrow({ order: this.order.value === ORDERS[0] ? "" : this.order.value });
    const orders = ORDERS.map((order) => el("option", { value: order }, t(`notes.order.${order}`)));
    this.order = el("select", { onchange: setOrder }, orders);
    const sort = el("label", { class: "inline" }, `${t("library.sort")} `, this.order);
    this.tools = el("div", { class: "notes-tools" }, this.query, this.paper, this.colour, sort);
    this.all = el("input", {
      type: "checkbox",
      autocomplete: "off",
      onchange: () => this.list.selectAll(this.all.checked),
    });
    this.chosen = this.#buildChosen();
    this.status = el("p", { class: "status", role: "status" });
    this.problem = el("div", {});
    this.among = el("p", { class: "chosen", hidden: true });
    const head = el("div", { class: "view-head" }, el("h1", {}, t("notes")), this.status, this.among);
    const reading = el("div", { class: "reading wide" }, head, this.tools, this.chosen, this.problem);
    const scroller = el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("notes") }, reading);
    root.append(scroller);
    this.list = new NoteList(scroller, {
      onSelect: () => this.#renderChosen(),
      onChange: (note) => this.#replace(note),
      belongs: () => true,
    });
    reading.append(this.list.root);
  }

  #buildChosen() {
    const buttons = EXPORTS.map((kind) =>
      makeButton(
        "button quiet",
        () => exportNotes(kind, this.list.listChosen()),
        makeIcon("export"),
        t(`notes.export.${kind}`),
      ),
    );
    const copy = makeButton("button quiet", () => copyNotes(this.list.listChosen()), makeIcon("copy"), t("notes.copy"));
    const add = () => addNotesToProject(this.list.listChosen());
    this.add = makeButton("button quiet", add, makeIcon("plus"), t("project.add"));
    this.remove = makeButton("button quiet", () => this.#deleteSelected(), makeIcon("delete"), t("notes.delete"));
    this.which = el("span", { class: "about" });
    const all = el("label", { class: "check" }, this.all, t("library.select.all"));
    return el(
      "div",
      { class: "notes-chosen" },
      all,
      this.which,
      el("span", { class: "gap" }),
      buttons,
      copy,
      this.add,
      this.remove,
    );
  }

  #deleteSelected() {
    const own = this.list.listChosen().filter(({ is_annotation }) => !is_annotation);
    deleteNotes(own.map(({ id }) => id));
    this.query.focus();
  }

  /** Shows what the address asks for. */
  follow() {
    if (place.get().view !== "notes") return;
    if (this.isStale || this.project !== (place.get().query.project ?? "")) this.load();
    else this.show();
  }

  /** Notes have changed: they are loaded now if they are shown, else once they are. */
  expire() {
    this.isStale = true;
    this.follow();
  }

  load = inTurn(async () => {
    this.isStale = false;
    const { project } = place.get().query;
    this.project = project ?? "";
    try {
      const { notes } = await (project ? api.listProjectNotes(project) : api.listAllNotes());
      this.notes = keepUnchanged(this.notes, notes);
      this.isLoaded = true;
      this.problem.replaceChildren();
      this.#renderPapers();
      this.show();
    } catch (thrown) {
      this.isStale = true;
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown), () => this.load()));
    }
  });

  /** @param {Note} note */
  #replace(note) {
    this.notes = withNote(this.notes, note);
    this.show();
  }

  /** Offers the papers that have notes. */
  #renderPapers() {
    /** @type {Map<string, string>} */
    const titles = new Map();
    for (const note of this.notes) {
      for (const quote of note.quotes) titles.set(quote.paper, getTitle(quote));
    }
    const sorted = [...titles].sort(([, one], [, other]) => one.localeCompare(other));
    this.paper.replaceChildren(
      el("option", { value: "" }, t("notes.paper.all")),
      ...sorted.map(([id, title]) => el("option", { value: id }, shorten(joinLines(title), 80))),
    );
  }

  show() {
    if (!this.isLoaded) return;
    const wanted = parseWanted(place.get().query);
    if (document.activeElement !== this.query) this.query.value = wanted.q;
    for (const name of /** @type {const} */ (["paper", "colour", "order"])) this[name].value = wanted[name];
    const kept = this.notes.filter(({ id }) => !leaving.get().has(id));
    const shown = chooseNotes(kept, wanted, getPaperTitle);
    const values = { count: kept.length, shown: shown.length };
    this.tools.hidden = !kept.length;
    this.status.textContent = t(
      kept.length ? (shown.length === kept.length ? "notes.count" : "notes.some") : "notes.empty",
      values,
    );
    this.list.show(shown);
    this.#showProject();
  }

  /** The project whose notes these are, and a button that shows all. */
  #showProject() {
    this.among.hidden = !this.project;
    if (!this.project) return this.among.replaceChildren();
    const name = t("project.is", { name: getProjectName(this.project) });
    const clear = () => setQuery({ project: "" });
    const remove = makeButton("button bare", clear, makeIcon("close"), hideVisually(t("ask.tag.remove", { name })));
    const link = el("a", { href: linkTo({ view: "projects", query: { project: this.project } }) }, isolate(name));
    this.among.replaceChildren(el("span", { class: "tag" }, link, remove));
  }

  #renderChosen() {
    const { selected, notes } = this.list;
    this.chosen.hidden = !notes.length;
    this.all.checked = selected.size > 0 && selected.size === notes.length;
    this.all.indeterminate = selected.size > 0 && selected.size < notes.length;
    for (const button of [this.add, this.remove]) if (button) button.hidden = !selected.size;
    if (!this.which) return;
    this.which.textContent = selected.size ? t("library.selected", { count: selected.size }) : "";
    if (selected.size) announce(this.which.textContent);
  }

  refresh() {
    if (!this.isLoaded) return;
    this.#renderPapers();
    this.list.refresh();
    if (place.get().view === "notes") this.show();
  }
}

/** @param {HTMLElement} root */
export function setUpNotes(root) {
  const view = new NotesView(root);
  place.watch(() => view.follow());
  leaving.onChange(() => view.follow());
  library.onChange(() => view.refresh());
  // Papers that change or are removed change the places of notes.
  for (const kind of /** @type {const} */ (["notes", "papers", "hello"])) onEvent(kind, () => view.expire());
  projects.onChange(() => view.project && view.expire());
}

/**
 * The notes of one paper, to put beside it: an element that follows what changes until `end` is called.
 * @param {string} paper its id
 */
export function makeNotesPane(paper) {
  const status = el("p", { class: "status", role: "status" });
  const problem = el("div", {});
  const node = el("section", { class: "notes-pane", "aria-label": t("notes") }, status, problem);
  /** @type {Note[]} */
  let notes = [];
  const list = new NoteList(node, {
    onSelect: () => {},
    onChange: (note) => {
      notes = withNote(notes, note);
      show();
    },
    belongs: ({ quotes }) => quotes.some((quote) => quote.paper === paper),
  });
  const show = () => {
    const kept = notes.filter(({ id }) => !leaving.get().has(id));
    status.textContent = kept.length ? "" : t("notes.paper.none");
    list.show(chooseNotes(kept, parseWanted({}), getPaperTitle));
  };
  const load = inTurn(async () => {
    try {
      const loaded = await api.listNotes(paper);
      notes = keepUnchanged(notes, loaded.notes);
      problem.replaceChildren();
      show();
    } catch (thrown) {
      problem.replaceChildren(renderProblem(api.toApiError(thrown), load));
    }
  });
  const ends = [
    onEvent("notes", load),
    onEvent("papers", load),
    onEvent("hello", load),
    leaving.onChange(show),
    library.onChange(() => list.refresh()),
  ];
  load();
  const end = () => {
    for (const each of ends) each();
    list.saveChanges();
  };
  return { node, refresh: load, end };
}
