// The page of a paper: what it is, what it says, what it has to do with the other papers, and what can be done with it.

import * as api from "../base/api.js";
import { copyText, el, formatDate, formatPage, isolate, keepTogether, makeButton, makeIcon } from "../base/dom.js";
import { renderMessage, renderProblem } from "../base/dom.js";
import { listDrafts } from "../base/drafts.js";
import { goTo, linkTo, place } from "../base/router.js";
import { getScroller } from "../base/scrolling.js";
import { library } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";
import { joinValues } from "../library/catalog.js";
import { EditForm } from "../library/edit.js";
import { refreshLibrary } from "../library/library.js";
import { removePapers, renderMissing } from "../library/removed.js";
import { FIELD_NAMES, getName } from "../library/table.js";
import { makeNotesPane } from "../notes/notes.js";
import { makePageLink } from "../reader/reader.js";
import { Citations } from "./citations.js";
import { renderNotice } from "./notice.js";
import { PaperQuestions } from "./questions.js";

/** @typedef {import("../base/router.js").Reading} Reading */
/** @typedef {import("../base/strings.js").Key} Key */

const FEW = 10; // references that are shown at first

/** @type {Record<Api.AboutQuoteJson["kind"], Key>} */
const KINDS = { claim: "about.claim", method: "about.method", result: "about.result", limits: "about.limits" };

/**
 * @typedef {object} PaperHooks
 * @property {(...ids: string[]) => void} ask restricts questions to a paper
 * @property {(id: string, asked: import("./questions.js").Asked) => void} askPaper asks it a question
 * @property {import("./citations.js").RenderWork} renderWork
 */

/** @param {HTMLElement} root @param {PaperHooks} hooks */
export function setUpPaper(root, hooks) {
  const view = new PaperView(root, hooks);
  view.follow(false);
  place.onChange(() => view.follow(true));
  library.onChange((now, before) => view.refresh(now, before));
}

/** @param {string} id @param {string} name */
const linkToPaper = (id, name) => el("a", { href: linkTo({ view: "paper", id }) }, isolate(name));

/**
 * A section with a heading; null if nothing is in it.
 * @param {string} title @param {(Node | null)[]} nodes @param {string} [name]
 */
function makeSection(title, nodes, name = "") {
  const shown = nodes.filter((node) => node !== null);
  return shown.length ? el("section", { class: `paper-section ${name}` }, el("h2", {}, title), shown) : null;
}

class PaperView {
  #id = "";
  /** @type {Api.PaperDetails | null} */
  #paper = null;
  /** @type {AbortController | null} */
  #loading = null;
  #isEditing = false;
  #isStale = false; // it has changed while it was being edited
  /** @type {ReturnType<typeof makeNotesPane> | null} */
  #notes = null;

  /** @param {HTMLElement} root @param {PaperHooks} hooks */
  constructor(root, hooks) {
    this.hooks = hooks;
    this.head = el("header", { class: "paper-head" });
    this.status = el("p", { class: "status", role: "status" });
    this.problem = el("div");
    this.text = el("div"); // what it says
    this.questions = new PaperQuestions((asked) => this.hooks.askPaper(this.#id, asked));
    this.outline = el("div");
    this.notesLink = el("p");
    this.notesBox = el("div");
    this.relations = el("div"); // the papers and conversations around it
    this.citations = new Citations(hooks.renderWork);
    const parts = [
      this.head,
      this.problem,
      this.status,
      this.questions.node,
      this.text,
      this.outline,
      this.notesBox,
      this.relations,
      this.citations.node,
    ];
    this.scroller = el("div", { class: "scroll" }, el("div", { class: "reading paper" }, parts));
    root.append(this.scroller);
  }

  /** Shows the paper of the address. isMoved: a person went there on the page. @param {boolean} isMoved */
  follow(isMoved) {
    const { view, id } = place.get();
    if (view !== "paper" || id !== this.#id) {
      this.#notes?.end();
      this.#notes = null;
    }
    if (view !== "paper") {
      this.#id = ""; // it is loaded again when it is shown
      this.#loading?.abort();
      return;
    }
    if (id === this.#id) return;
    this.#id = id;
    this.#paper = null;
    this.#isEditing = false;
    getScroller(this.scroller).scrollTop = 0;
    const listed = library.get().papers.get(id);
    const title = el("h1", { tabindex: "-1" }, listed ? isolate(getName(listed)) : t("paper"));
    this.head.replaceChildren(title);
    // The heading gets the focus once the view is shown, unless the reader opens.
    if (isMoved && !place.get().reading) queueMicrotask(() => title.focus({ preventScroll: true }));
    for (const node of [this.text, this.outline, this.notesBox, this.relations, this.problem]) node.replaceChildren();
    this.citations.show(id);
    this.citations.node.hidden = true;
    this.questions.node.hidden = true;
    this.#load();
  }

  /** @param {import("../base/state.js").Library} now @param {import("../base/state.js").Library} before */
  refresh(now, before) {
    if (!this.#id || now.papers.get(this.#id) === before.papers.get(this.#id)) return;
    this.#isStale = this.#isEditing;
    if (!this.#isEditing) this.#load();
  }

  async #load() {
    this.#loading?.abort();
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    const id = this.#id;
    if (!this.#paper) this.#say(t("loading"));
    try {
      const paper = await api.getPaper(id);
      if (signal.aborted) return;
      const isNew = !this.#paper;
      this.#paper = paper;
      this.#showPaper(paper);
      if (isNew && listDrafts(`paper ${id}`).length) this.#edit();
      const about = await api.getAbout(id, signal);
      if (!signal.aborted) this.#showAbout(paper, about);
      this.problem.replaceChildren();
    } catch (thrown) {
      if (signal.aborted) return;
      this.problem.replaceChildren(renderMissing(thrown, id, () => this.#load()));
    }
    this.#say("");
  }

  /** @param {string} text */
  #say(text) {
    this.status.textContent = text;
    this.status.classList.toggle("working", Boolean(text));
  }

  // What is known of it

  /** @param {Api.PaperDetails} paper */
  #showPaper(paper) {
    document.title = `${shorten(joinLines(getName(paper)), 80)} · Folio`;
    this.citations.node.hidden = false;
    this.questions.node.hidden = false;
    if (!this.#isEditing) this.#showHead(paper);
    const items = paper.outline.map((section) => renderOutline(paper.id, section));
    const outline = items.length ? el("ol", { class: "outline" }, items) : null;
    show(this.outline, [makeSection(t("paper.outline"), [outline])]);
  }

  /** @param {Api.PaperDetails} paper */
  #showHead(paper) {
    const hadFocus = this.head.contains(document.activeElement);
    const { authors, venue, date, pages, arxiv, doi, file, problems } = paper;
    const facts = [
      date ? el("time", { datetime: date }, date) : null,
      venue ? isolate(venue) : null,
      t("paper.pages", { count: pages }),
      doi ? isolate(`doi:${doi}`) : null,
      arxiv ? isolate(`arXiv:${arxiv}`) : null,
      paper.categories.length ? isolate(paper.categories.join(", ")) : null,
      paper.title ? isolate(file) : null,
    ].filter((fact) => fact !== null);
    const notices = paper.notices.length ? paper.notices : [paper.notice].filter((notice) => notice !== null);
    const unsure = paper.unsure.map((name) => (FIELD_NAMES[name] ? t(FIELD_NAMES[name]) : name)).join(", ");
    const warnings = problems.map((text) => el("li", {}, makeIcon("warning"), renderMessage(text)));
    const nodes = [
      el("h1", { tabindex: "-1" }, isolate(getName(paper))),
      ...notices.map(renderNotice),
      authors.length ? el("p", { class: "authors" }, isolate(authors.join(", "))) : null,
      el(
        "p",
        { class: "about" },
        facts.flatMap((fact, at) => (at ? [" · ", fact] : [fact])),
      ),
      unsure ? el("p", { class: "unsure" }, t("paper.unsure", { names: unsure })) : null,
      renderNames(paper),
      warnings.length ? el("ul", { class: "odd" }, warnings) : null,
      this.#makeActions(paper),
    ];
    this.head.replaceChildren(...nodes.filter((node) => node !== null));
    if (hadFocus) this.head.querySelector("h1")?.focus();
  }

  /** @param {Api.PaperDetails} paper */
  #makeActions(paper) {
    const page = library.get().papers.get(paper.id)?.read_page || 1;
    const name = page > 1 ? t("paper.continue", { page: String(page) }) : t("paper.read");
    const reading = { paper: paper.id, page, from: null, to: null };
    return el(
      "div",
      { class: "paper-actions" },
      makePageLink(reading, { class: "button primary" }, name),
      makeButton("button", () => this.hooks.ask(paper.id), t("paper.ask")),
      makeButton("button", () => this.#edit(), t("edit")),
      makeButton(
        "button quiet",
        () => copyText(paper.bibtex, t("paper.bibtex")),
        makeIcon("copy"),
        t("paper.bibtex.copy"),
      ),
      makeButton(
        "button quiet",
        () => copyText(paper.reference, t("paper.citation")),
        makeIcon("copy"),
        t("paper.citation.copy"),
      ),
      el(
        "a",
        { class: "button quiet", href: api.pdfUrl(paper.id, page), target: "_blank", rel: "noopener" },
        makeIcon("out"),
        t("paper.pdf"),
      ),
      makeButton("button quiet", () => this.#remove(), makeIcon("delete"), t("remove")),
    );
  }

  // What can be done with it

  #edit() {
    if (!this.#paper) return;
    this.#isEditing = true;
    const close = () => {
      this.#isEditing = false;
      if (this.#paper) this.#showHead(this.#paper);
      this.head.querySelector("h1")?.focus();
      if (this.#isStale) this.#load();
      this.#isStale = false;
    };
    const form = new EditForm(this.#paper, {
      changed: async () => {
        this.#paper = form.paper;
        await refreshLibrary();
      },
      saved: close,
      close,
    });
    form.node.addEventListener("keydown", ({ key }) => {
      if (key === "Escape") close();
    });
    form.node.setAttribute("aria-label", `${t("edit")} ${shorten(joinLines(this.#paper.file))}`);
    this.head.replaceChildren(el("h1", {}, isolate(getName(this.#paper))), form.node);
    form.focus();
  }

  async #remove() {
    if (!this.#paper) return;
    try {
      const isRemoved = await removePapers([this.#paper], () => refreshLibrary());
      if (isRemoved) goTo({ view: "library", id: "", query: {}, reading: null });
    } catch (thrown) {
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown), () => this.#remove()));
    }
  }

  // What it says, and the papers around it

  /** @param {Api.PaperDetails} paper @param {Api.PaperAbout} about */
  #showAbout(paper, about) {
    const { id } = paper;
    const focused = [this.text, this.relations].some((node) => node.contains(document.activeElement));
    const conversations = about.conversations.map((each) => {
      const link = el("a", { href: linkTo({ id: each.id }) }, isolate(joinLines(each.title)));
      return el("li", {}, link, el("span", { class: "about" }, formatDate(each.updated)));
    });
    this.#showNotes(id, about.notes);
    show(this.text, [
      makeSection(t("paper.abstract"), [
        about.abstract ? el("p", { class: "paper-abstract" }, isolate(about.abstract)) : null,
      ]),
      makeSection(
        t("paper.about"),
        about.quotes.map((quote) => renderQuote(id, quote)),
        "paper-quotes",
      ),
    ]);
    show(this.relations, [
      makeSection(t("paper.conversations"), [listOf(conversations)]),
      makeSection(t("paper.cited"), [listOf(about.cited_here_by.map(renderLike))]),
      makeSection(t("paper.similar"), [listOf(about.similar.map(renderLike))]),
      makeSection(t("paper.references"), renderReferences(id, about.references)),
    ]);
    if (focused) this.head.querySelector("h1")?.focus();
  }

  /** The pane stays, as a note may be being written in it. @param {string} id @param {number} count of its notes */
  #showNotes(id, count) {
    const link = el("a", { href: linkTo({ view: "notes", query: { paper: id } }) }, t("paper.notes", { count }));
    this.notesLink.replaceChildren(...(count ? [link] : []));
    if (this.#notes) return;
    this.#notes = makeNotesPane(id);
    show(this.notesBox, [makeSection(t("paper.notes.title"), [this.notesLink, this.#notes.node])]);
  }
}

/** @param {HTMLElement} box @param {(HTMLElement | null)[]} sections */
const show = (box, sections) => box.replaceChildren(...sections.filter((section) => section !== null));

/** @param {HTMLElement[]} items */
const listOf = (items) => (items.length ? el("ul", { class: "paper-list" }, items) : null);

/** @param {Api.LikePaperJson} paper */
const renderLike = ({ paper, title, year }) => {
  const listed = library.get().papers.get(paper);
  return el("li", {}, linkToPaper(paper, listed ? getName(listed) : title), year ? ` (${year})` : null);
};

/** Its collections and tags, as links to the papers that have them too. @param {Api.PaperDetails} paper */
function renderNames({ collections, tags }) {
  if (!collections.length && !tags.length) return null;
  /** @param {"collection" | "tag"} facet @param {string} value */
  const link = (facet, value) => {
    const query = { [facet]: joinValues([value]) };
    return el("li", {}, el("a", { class: `name ${facet}`, href: linkTo({ view: "library", query }) }, isolate(value)));
  };
  return el(
    "ul",
    { class: "paper-names", "aria-label": t("paper.names") },
    collections.map((path) => link("collection", path)),
    tags.map((tag) => link("tag", tag)),
  );
}

/** @param {string} paper @param {Api.OutlineJson} section */
function renderOutline(paper, { title, level, page, start, end }) {
  const reading = { paper, page, from: start, to: Math.min(end, start + [...title].length) };
  const link = makePageLink(reading, {}, isolate(title));
  return el("li", { class: `level-${Math.min(4, level)}` }, link, el("span", { class: "at" }, formatPage(page)));
}

/** @param {string} paper @param {Api.AboutQuoteJson} quote */
function renderQuote(paper, { kind, start, end, page, label, quote }) {
  const reading = { paper, page, from: start, to: end };
  return el(
    "figure",
    { class: "paper-quote" },
    el("figcaption", {}, t(KINDS[kind])),
    el("blockquote", {}, isolate(quote)),
    makePageLink(reading, {}, keepTogether(formatPage(page, label))),
  );
}

/** The references that are papers here come with a link; the first ones are shown. */
/** @param {string} paper @param {Api.ReferenceJson[]} references */
function renderReferences(paper, references) {
  if (!references.length) return [];
  const here = references.filter((reference) => reference.paper).length;
  const items = references.map((reference) => renderReference(paper, reference));
  const list = el("ol", { class: "cited-works" }, items.slice(0, FEW));
  const count = t("paper.references.count", { count: references.length, here });
  const showAll = () => {
    list.append(...items.slice(FEW));
    more.remove();
    items[FEW].querySelector("a")?.focus();
  };
  const more = makeButton("button quiet", showAll, t("paper.references.all", { count: references.length }));
  return [el("p", { class: "about" }, count), list, items.length > FEW ? more : null];
}

/** @param {string} paper @param {Api.ReferenceJson} reference */
function renderReference(paper, reference) {
  const { text, page, start, end, title, year } = reference;
  const listed = library.get().papers.get(reference.paper);
  const name = listed ? getName(listed) : title || text;
  const here = reference.paper
    ? el("p", { class: "here" }, makeIcon("check"), linkToPaper(reference.paper, year ? `${name} (${year})` : name))
    : null;
  const link = makePageLink({ paper, page, from: start, to: end }, {}, keepTogether(formatPage(page)));
  return el("li", {}, isolate(joinLines(text)), " ", link, here);
}
