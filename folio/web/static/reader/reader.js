// The reader: papers open beside the page, with what is marked in them, found in them and noted on them.

import * as api from "../base/api.js";
import { followCard } from "../base/card.js";
import { byId, confirmAction, copyText, el, formatPages, isolate, keepTogether } from "../base/dom.js";
import { makeButton, makeIcon, makeLink } from "../base/dom.js";
import { recall, remember, showToast } from "../base/dom.js";
import { onEvent } from "../base/events.js";
import { showFailure } from "../base/failure.js";
import { inTurn } from "../base/pace.js";
import { formatPlace, parseLook } from "../base/place.js";
import { closeReading, linkTo, openReading, place, setLook } from "../base/router.js";
import { onScroll } from "../base/scrolling.js";
import { renderMissing } from "../library/removed.js";
import { getTitle, library, selection } from "../base/state.js";
import { parts, t } from "../base/strings.js";
import { checkZoteroLink, joinLines } from "../base/text.js";
import { formatQuoted } from "./citing.js";
import { setUpAreas } from "./areas.js";
import { Contents } from "./contents.js";
import { DocumentView, phone } from "./document_view.js";
import { FindBar } from "./find_bar.js";
import { findGoal } from "./leads.js";
import { NoteCard } from "./note_card.js";
import { forgetPapers, forgetTexts, getPaper, getText, peekPaper, peekText } from "./pages.js";
import { buildBar, buildEdge, buildFoot, buildHead, showZoom } from "./pane.js";
import { readSelection, selectWords, steadySelection } from "./selecting.js";
import { SelectionBar } from "./selection_bar.js";
import { checksum, getText as getSpanText, locate } from "./spans.js";
import { Tabs } from "./tabs.js";
import { formatZoom, parseZoom } from "./zoom.js";

/** @typedef {import("./spans.js").Mark} Mark */
/** @typedef {import("./spans.js").Span} Span */
/** @typedef {import("./leads.js").Lead} Lead */
/** @typedef {import("./selecting.js").Selected} Selected */
/** @typedef {import("../base/state.js").Selection} Selection */
/** @typedef {import("./tabs.js").Tab} Tab */
/**
 * @typedef {object} Target A page to open.
 * @property {string} paper
 * @property {number} page
 * @property {number | null} [from] where the quote begins and ends in the paper; null: `quote` is looked for
 * @property {number | null} [to]
 * @property {string} [quote] its words
 * @property {Mark[]} [marks] other quotes of the same answer in this paper, which are marked too
 * @property {number[] | null} [area] of a note that is shown
 * @property {boolean} [passage] the marks are the pieces of one passage
 * @property {string} [title]
 * @property {string} [file]
 * @property {HTMLElement | null} [opener] gets the focus back on closing
 */
/** @typedef {Pick<Api.HitJson, "paper" | "title" | "file" | "text" | "pages">} PassageText */
/** @typedef {PassageText & {page_breaks?: number[], span?: Span | null}} Passage */
/**
 * @typedef {object} Links
 * @property {(selected: Selection, question: string) => void} ask
 * @property {(paper: string, asked: import("../paper/questions.js").Asked) => void} askPaper
 * @property {(target: Target) => void} opened a person opened a page from what is shown
 */

const MAX_PIECES = 12; // a passage without a span is looked for in at most this many pieces
const ADDRESS_MS = 200; // between two changes of the address while pages are scrolled
const SELECT_MS = 150;
const narrow = matchMedia("(max-width: 859px), (max-height: 499px)");

class Reader {
  /** @type {Tab | null} */
  tab = null;
  /** @type {Api.NoteJson[]} */
  notes = [];
  failed = ""; // the paper whose details could not be loaded
  /** @type {HTMLElement | null} */
  opener = null;
  #isSelecting = false;
  #addressTimer = 0;
  #followed = ""; // how the address wanted pages to be shown
  #note = ""; // the one that is open in the card
  #wanted = ""; // the note that the address has, until the notes are loaded
  #selectTimer = 0;
  /** @type {Map<string, {tab: Tab, share: number}>} where a person was before a jump, by the address that Back returns to */
  #left = new Map();
  /** @type {() => void} */
  #armArea = () => {};
  #isDark = recall("reader-dark") === "on";

  /** @param {Links} links */
  constructor(links) {
    this.links = links;
    this.view = new DocumentView({
      onPage: (page) => this.#showPage(page),
      getTurn: (page) => this.#getTurn(page),
      onZoom: () => {
        showZoom(this.bar.zoom, this.view.zoom);
        this.#keepAddress(0);
      },
      getMarks: (text) => this.#getMarks(text),
      formatLead: (lead) => this.#formatLead(lead),
      onLead: (lead) => this.#followLead(lead),
      findGoal: (lead) => this.#findGoal(lead),
      onNote: (note) => this.#editNote(note),
    });
    this.tabs = new Tabs({ onChoose: (tab) => this.#openTab(tab), onClose: (paper) => this.#closeTab(paper) });
    this.find = new FindBar({
      onHits: () => {
        this.view.refreshMarks();
        this.#keepAddress();
      },
      onHit: ([start, end, page]) => this.view.goTo(page, [start, end]),
      onClose: () => this.view.scroller.focus({ preventScroll: true }),
      getPage: () => this.view.page,
    });
    this.contents = new Contents(
      (page, heading) => this.#jump(page, heading),
      () => this.#keepAddress(0),
    );
    this.card = new NoteCard({
      onChange: () => this.refreshNotes(),
      onClose: () => {
        this.#note = "";
        this.#keepAddress();
        this.view.scroller.focus({ preventScroll: true });
      },
    });
    this.selectionBar = new SelectionBar(
      {
        ask: (selected, question) => this.#ask(selected, question),
        highlight: (selected, colour) => this.#highlight(selected, colour),
        note: (selected) => this.#startNote(selected),
        copy: (selected, format) => this.#copy(selected, format),
      },
      () => this.#leaveSelection(),
    );
    const controls = this.#makeControls();
    this.head = buildHead(controls);
    this.bar = buildBar(controls);
    this.foot = buildFoot(controls);
    this.status = el("p", { class: "unseen", role: "status" });
    this.message = el("div", { class: "reader-message", hidden: true });
    this.pane = this.#buildPane();
    this.#listen();
  }

  /** @returns {import("./pane.js").Controls} */
  #makeControls() {
    return {
      close: () => closeReading(),
      goTo: (page) => this.#turnTo(page),
      toggleContents: () => this.#toggleContents(),
      find: () => this.#startFind(),
      toggleText: () => this.#toggleText(),
      toggleDark: () => this.#toggleDark(),
      zoomBy: (by) => this.view.zoomBy(by),
      setZoom: (zoom) => this.view.setZoom(zoom),
      copyCitation: () => this.#copyCitation(),
      copyBibtex: () => this.#copyBibtex(),
      note: (what) => this.#noteWithoutWords(what),
      turn: (isAll) => this.#turn(isAll),
      askPaper: (asked) => {
        if (this.tab) this.links.askPaper(this.tab.paper, asked);
      },
    };
  }

  #buildPane() {
    const columns = byId("columns");
    const body = el("div", { class: "reader-body" }, this.contents.node, this.view.scroller);
    const top = [this.head.node, this.tabs.node, this.bar.node, this.find.node, this.message];
    const rest = [body, this.card.node, this.foot.node, this.selectionBar.node, this.status];
    const inside = el("div", { class: "reader-inside" }, top, rest);
    const pane = el("dialog", { class: "reader", id: "reader", "aria-labelledby": "reader-title" });
    pane.append(buildEdge(columns), inside);
    columns.append(pane);
    this.#showToggles();
    return pane;
  }

  #listen() {
    const { pane, view } = this;
    pane.addEventListener("keydown", (event) => this.#handleKey(event));
    pane.addEventListener("copy", (event) => this.#copyWords(event));
    steadySelection(view.root);
    view.root.addEventListener("pointerdown", ({ pointerType }) => {
      this.#isSelecting = true;
      if (pointerType === "mouse") this.selectionBar.hide(); // what is selected next may lie below it
    });
    for (const name of ["pointerup", "pointercancel"]) {
      addEventListener(name, () => {
        this.#isSelecting = false; // a long touch is cancelled once the browser selects words
        this.#showSelectionSoon();
      });
    }
    view.root.addEventListener("click", (event) => this.#openNoteAt(event));
    document.addEventListener("selectionchange", () => this.#showSelectionSoon());
    onScroll(view.root, () => this.#placeSelectionBar());
    followCard(view.scroller);
    this.#armArea = setUpAreas(
      view.root,
      (page, x, y) => view.toPoints(page, x, y),
      (page, area) => this.#write(page, area),
    );
    narrow.addEventListener("change", () => this.#cover());
    library.onChange(() => {
      forgetPapers(); // one of them may have been edited
      if (this.tab) this.#loadPaper(this.tab.paper);
    });
    setLook(() => this.#readLook());
    this.#applyLook(parseLook(Object.fromEntries(new URLSearchParams(recall("reader-look") ?? ""))));
    onEvent("hello", () => this.#reload(null));
    onEvent("papers", ({ changed }) => this.#reload(changed));
    place.watch(({ reading }) => this.#follow(reading));
  }

  /** These papers, or all, may have been read again: their words may stand elsewhere. @param {string[] | null} papers */
  #reload(papers) {
    forgetTexts(papers);
    if (!this.tab || (papers && !papers.includes(this.tab.paper))) return;
    this.view.reloadTexts();
    this.find.refresh();
    this.refreshNotes();
  }

  get isOpen() {
    return this.pane.open;
  }

  // Opening and closing

  /** @param {Target} target */
  open(target) {
    const { paper, page, from = null, to = null, quote = "", marks = [], passage = false, opener = null } = target;
    const { area = null } = target;
    const { title, file } = library.get().papers.get(paper) ?? peekPaper(paper) ?? target;
    const mark = { page, from, to, quote };
    this.tabs.put({ paper, title: title ?? "", file: file ?? "", page, mark, others: marks, isPassage: passage });
    this.opener?.classList.remove("shown");
    this.opener = opener;
    opener?.classList.add("shown");
    const before = place.get();
    this.#left.delete(keyOf({ paper, page, from, to }));
    openReading({ paper, page, from, to, words: quote ? checksum(quote) : undefined });
    if (place.get() === before) this.#follow(before.reading);
    if (area) this.view.goTo(page, null, (area[1] - 20) / (peekPaper(paper)?.sizes[page - 1]?.[1] ?? 792));
    this.view.scroller.focus({ preventScroll: true });
  }

  /** Shows what the address says. @param {import("../base/place.js").Place["reading"]} reading */
  #follow(reading) {
    if (!reading) return this.#close();
    const { paper, page, from, to, words } = reading;
    const left = this.#left.get(keyOf(reading));
    this.#left.delete(keyOf(reading));
    let tab = left ? { ...left.tab } : this.tabs.get(paper);
    if (left && tab) this.tabs.put(tab);
    else if (!tab) {
      tab = {
        paper,
        title: "",
        file: "",
        page,
        mark: { page, from, to, quote: "", words },
        others: [],
        isPassage: false,
      };
      this.tabs.put(tab);
    } else if (from !== null && (tab.mark.from !== from || tab.mark.to !== to)) {
      this.tabs.put({ ...tab, mark: { page, from, to, quote: "", words }, others: [] });
    }
    const isOther = this.tab?.paper !== paper || !this.isOpen;
    const isScrolled = !isOther && this.view.page === page && this.tab === this.tabs.get(paper);
    this.tab = this.tabs.get(paper) ?? tab;
    this.#openPane();
    if (isOther) this.#showPaper(paper, page);
    this.#followLook(parseLook(/** @type {any} */ (reading)));
    if (isScrolled) return;
    this.tab.page = page;
    this.tabs.put(this.tab);
    this.view.refreshMarks();
    if (left) this.view.goTo(page, null, left.share);
    else this.#scrollTo(page);
  }

  /** Scrolls to a page, and to the quote if it is there. @param {number} page */
  #scrollTo(page) {
    if (!this.tab) return;
    const text = peekText(this.tab.paper, page);
    const span = text ? this.#getFirstMark(text) : null;
    this.view.goTo(page, span ?? this.#getKnownSpan());
    if (!text) this.#scrollOnceKnown(this.tab, page);
    this.#showMessage();
  }

  /** @returns {Span | null} */
  #getKnownSpan() {
    const { from, to } = this.tab?.mark ?? {};
    return from != null && to != null ? [from, to] : null;
  }

  /** @param {Tab} tab @param {number} page */
  async #scrollOnceKnown(tab, page) {
    const text = await getText(tab.paper, page).catch(() => null);
    if (!text || this.tab !== tab || this.view.page !== page) return;
    const span = this.#getFirstMark(text);
    if (span) this.view.goTo(page, span);
    this.#showMessage();
  }

  #openPane() {
    if (this.isOpen) return;
    this.pane.show();
    document.body.classList.add("with-reader");
    this.#cover();
  }

  #close() {
    if (!this.isOpen) return;
    this.pane.close();
    document.body.classList.remove("with-reader");
    this.#cover();
    this.selectionBar.hide();
    this.find.close();
    this.card.close();
    clearTimeout(this.#addressTimer);
    this.tab = null;
    this.#followed = "";
    const { opener } = this;
    this.opener = null;
    opener?.classList.remove("shown");
    if (opener?.isConnected) opener.focus();
    else if (document.activeElement === document.body) byId("main").focus();
  }

  /** On a narrow screen the reader covers the page, which then is out of reach. */
  #cover() {
    const isCovering = this.isOpen && narrow.matches;
    document.body.classList.toggle("covered", isCovering);
    for (const node of document.querySelectorAll(".top, .side, main, .adding, .foot")) {
      if (node instanceof HTMLElement) node.inert = isCovering;
    }
  }

  /** @param {string} paper @param {number} page */
  #showPaper(paper, page) {
    this.selectionBar.hide();
    this.card.close();
    this.failed = "";
    this.notes = [];
    this.#showDetails();
    this.view.show(paper, peekPaper(paper)?.pages ?? page, page);
    this.find.setPaper(paper);
    this.tabs.render(paper);
    this.refreshNotes();
    this.card.restore(paper);
    if (!peekPaper(paper)) this.#loadPaper(paper);
  }

  /** @param {string} paper */
  async #loadPaper(paper) {
    let loaded;
    try {
      loaded = await getPaper(paper);
    } catch (thrown) {
      if (this.tab?.paper === paper) this.#showError(thrown, paper);
      return;
    }
    if (this.tab?.paper !== paper) return;
    this.failed = "";
    if (this.tab.page > loaded.pages) openReading({ paper, page: loaded.pages, from: null, to: null });
    this.view.show(paper, loaded.pages, this.tab.page);
    this.#showDetails();
    this.#showMessage();
  }

  /** @param {unknown} thrown @param {string} paper */
  #showError(thrown, paper) {
    const retry = () => {
      this.#loadPaper(paper);
      this.view.reloadTexts();
    };
    this.failed = paper;
    this.message.hidden = false;
    this.message.replaceChildren(renderMissing(thrown, paper, retry));
  }

  /** @param {Tab} tab */
  #openTab({ paper, page, mark }) {
    const words = mark.quote ? checksum(mark.quote) : mark.words;
    openReading({ paper, page, from: mark.from ?? null, to: mark.to ?? null, words });
    this.view.scroller.focus({ preventScroll: true });
  }

  /** @param {string} paper */
  #closeTab(paper) {
    const at = this.tabs.all.findIndex((tab) => tab.paper === paper);
    const next = this.tabs.all[at + 1] ?? this.tabs.all[at - 1];
    const isShown = this.tab?.paper === paper;
    this.tabs.remove(paper);
    if (!isShown) return;
    if (next) this.#openTab(next);
    else closeReading();
  }

  // What is shown

  #showDetails() {
    if (!this.tab) return;
    const { paper } = this.tab;
    const details = peekPaper(paper);
    const { title, file } = library.get().papers.get(paper) ?? details ?? this.tab;
    if (title !== this.tab.title || file !== this.tab.file) this.tabs.put(Object.assign(this.tab, { title, file }));
    this.head.title.replaceChildren(isolate(title || file));
    this.head.file.replaceChildren(title ? isolate(file) : "");
    this.tabs.render(paper);
    this.contents.show(details);
    this.foot.citation.disabled = this.foot.bibtex.disabled = details === null;
    this.#showPage(this.tab.page);
  }

  /** @param {number} page */
  #showPage(page) {
    const { tab } = this;
    if (!tab || !page) return;
    const details = peekPaper(tab.paper);
    this.bar.setPage(page);
    const label = details?.labels[page - 1];
    const printed = label && label !== String(page) ? [" ", ...parts("reader.printed", { label: isolate(label) })] : [];
    this.bar.of.replaceChildren(details ? t("reader.of", { pages: String(details.pages) }) : "", ...printed);
    this.bar.previous.disabled = page <= 1;
    this.bar.next.disabled = details !== null && page >= details.pages;
    this.foot.pdf.href = api.pdfUrl(tab.paper, page);
    const zotero = details?.zotero ? checkZoteroLink(`${details.zotero}?page=${page}`) : "";
    this.foot.zotero.hidden = !zotero;
    if (zotero) this.foot.zotero.href = zotero;
    this.contents.setPage(page);
    this.#keepPage(tab, page);
  }

  /** Keeps the page in view in the address, and with its tab. @param {Tab} tab @param {number} page */
  #keepPage(tab, page) {
    if (tab.page === page) return;
    tab.page = page;
    this.tabs.put(tab);
    this.#keepAddress();
  }

  /** Puts what is shown, and how, into the address: soon, as browsers limit how often it may change. */
  #keepAddress(delay = ADDRESS_MS) {
    const { as, zoom, pane } = this.#readLook();
    remember("reader-look", String(new URLSearchParams({ as, zoom: Number(zoom) ? "" : zoom, pane })));
    clearTimeout(this.#addressTimer);
    const { tab } = this;
    const keep = () => {
      const { reading } = place.get();
      if (!tab || reading?.paper !== tab.paper || this.tab !== tab) return;
      openReading({ ...reading, page: tab.page }, { replace: true });
      this.#showMessage();
    };
    if (delay) this.#addressTimer = setTimeout(keep, delay);
    else keep();
  }

  /** How pages are shown. */
  #readLook() {
    const { isAsText, zoom } = this.view;
    const as = isAsText === phone.matches ? "" : isAsText ? "text" : "picture";
    return { as, zoom: formatZoom(zoom), pane: this.contents.pane, find: this.find.words, note: this.#note };
  }

  /** Shows pages as the address wants, unless it only has what was chosen here. @param {import("../base/place.js").Look} look */
  #followLook(look) {
    const wanted = JSON.stringify(look);
    if (wanted === this.#followed) return;
    this.#followed = wanted;
    if (wanted !== JSON.stringify(parseLook(this.#readLook()))) this.#applyLook(look);
  }

  /** @param {import("../base/place.js").Look} look */
  #applyLook({ as, zoom = "", pane = "", find = "", note = "" }) {
    const isAsText = as ? as === "text" : phone.matches;
    if (isAsText !== this.view.isAsText) this.view.setMode(isAsText);
    if (zoom !== formatZoom(this.view.zoom)) this.view.setZoom(parseZoom(zoom));
    this.contents.setPane(/** @type {"" | "outline" | "pages"} */ (pane));
    if (!find) this.find.close();
    else if (this.tab && find !== this.find.words) this.find.show(this.tab.paper, find);
    this.#wanted = note;
    if (note) this.#openWanted();
    else if (this.#note) this.card.close();
    this.#showToggles();
    showZoom(this.bar.zoom, this.view.zoom);
  }

  /** Opens the note that the address has, once it is loaded. */
  #openWanted() {
    const note = this.notes.find(({ id }) => id === this.#wanted);
    if (note && this.#note !== note.id) this.#editNote(note);
    if (note) this.#wanted = "";
  }

  /** @param {Api.NoteJson} note */
  #editNote(note) {
    this.card.edit(note);
    this.#note = note.id;
    this.#keepAddress(0);
  }

  #showToggles() {
    this.bar.contents.setAttribute("aria-pressed", String(this.contents.isOpen));
    this.bar.text.setAttribute("aria-pressed", String(this.view.isAsText));
    this.bar.dark.setAttribute("aria-pressed", String(this.#isDark));
    this.view.root.classList.toggle("dark-pages", this.#isDark);
    this.bar.node.classList.toggle("as-text", this.view.isAsText);
    this.bar.zoom.hidden = this.view.isAsText; // the buttons change the size of its letters
  }

  #toggleContents() {
    this.contents.toggle();
    this.#showToggles();
  }

  #toggleText() {
    this.view.setMode(!this.view.isAsText);
    this.#keepAddress(0);
    this.#showToggles();
    this.#scrollTo(this.view.page);
  }

  #toggleDark() {
    this.#isDark = !this.#isDark;
    remember("reader-dark", this.#isDark ? "on" : "");
    this.#showToggles();
  }

  // Marks

  /** @param {Api.PageText} text @returns {Span | null} the quote on a page, or the first piece of the passage there */
  #getFirstMark(text) {
    const marks = this.tab ? [this.tab.mark, ...(this.tab.isPassage ? this.tab.others : [])] : [];
    for (const mark of marks) {
      const span = locate(text, mark);
      if (span) return span;
    }
    return null;
  }

  /** @param {Api.PageText} text @returns {import("./page_view.js").Shown[]} */
  #getMarks(text) {
    const { tab } = this;
    if (!tab) return [];
    const marks = this.#getNoteMarks(text, tab.paper);
    for (const other of tab.others) {
      const span = locate(text, other);
      if (span) marks.push({ span, kind: tab.isPassage ? "quote" : "other" });
    }
    const span = locate(text, tab.mark);
    if (span) marks.push({ span, kind: "quote" });
    if (span && text.page === tab.mark.page) this.#keepSpan(tab, span);
    this.find.hits.forEach(([start, end], at) => {
      if (end > text.start && start < text.end) {
        marks.push({ span: [start, end], kind: at === this.find.at ? "current" : "hit" });
      }
    });
    return marks.filter((mark) => mark.area || (mark.span[1] > text.start && mark.span[0] < text.end));
  }

  /** @param {Api.PageText} text @param {string} paper @returns {import("./page_view.js").Shown[]} */
  #getNoteMarks(text, paper) {
    return this.notes.flatMap((note) =>
      note.quotes.flatMap(({ paper: other, page, start, end, quote, area, place: where }) => {
        if (other !== paper || (where !== "here" && where !== "moved")) return [];
        if (!quote && (page || 1) !== text.page) return [];
        const span0 = /** @type {Span} */ ([text.start, text.start]);
        if (!quote) return [{ span: span0, kind: "noted", colour: note.colour, note, area: [area ?? []] }];
        const span = locate(text, { page, from: start, to: end, quote });
        return span ? [{ span, kind: /** @type {const} */ ("noted"), colour: note.colour, note }] : [];
      }),
    );
  }

  /** The words of a quote were found: from now on the address says where they stand. */
  /** @param {Tab} tab @param {Span} span */
  #keepSpan(tab, [from, to]) {
    const { mark } = tab;
    if (mark.from === from && mark.to === to) return;
    mark.from = from;
    mark.to = to;
    this.tabs.put(tab);
    const { reading } = place.get();
    if (reading?.paper === tab.paper) openReading({ ...reading, from, to }, { replace: true });
  }

  /** Says where the quote is, if it is not in view, or that it could not be marked. */
  #showMessage() {
    const { tab } = this;
    if (!tab || tab.paper === this.failed) return; // the problem stays
    const { mark, others, isPassage } = tab;
    const isMarked = Boolean(mark.quote) || mark.from != null || (isPassage && others.length > 0);
    const text = peekText(tab.paper, mark.page);
    const span = text ? this.#getFirstMark(text) : null;
    this.message.replaceChildren();
    this.message.hidden = true;
    if (!isMarked || !text) return;
    if (this.view.page !== mark.page) {
      const back = () => this.#jump(mark.page, span);
      this.message.append(
        makeButton("button quiet", back, makeIcon("again"), t("reader.back_to_quote", { page: String(mark.page) })),
      );
      this.message.hidden = false;
      return;
    }
    const where = t("reader.page", {
      page: String(mark.page),
      pages: String(peekPaper(tab.paper)?.pages ?? mark.page),
    });
    this.status.textContent = span ? t("reader.marked", { where }) : "";
    if (span) return;
    const missing = t(isPassage ? "reader.passage_missing" : "reader.quote_missing");
    if (mark.quote) this.message.append(el("blockquote", { tabindex: "0" }, isolate(joinLines(mark.quote))));
    this.message.append(el("p", { class: "note" }, makeIcon("warning"), missing));
    this.message.hidden = false;
  }

  refreshNotes = inTurn(async () => {
    const paper = this.tab?.paper;
    if (!paper) return;
    const { notes } = await api.listNotes(paper).catch(() => ({ notes: this.notes }));
    if (this.tab?.paper !== paper) return;
    this.notes = notes;
    this.view.refreshMarks();
    this.#openWanted();
  });

  /** A press on a highlight opens its note. @param {MouseEvent} event */
  #openNoteAt(event) {
    if (!getSelection()?.isCollapsed) return;
    const { clientX: x, clientY: y } = event;
    const marks = /** @type {HTMLElement[]} */ ([...this.view.root.querySelectorAll(".page-mark.noted")]);
    const hit = marks.find((node) => {
      const box = node.getBoundingClientRect();
      return x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
    });
    const note = this.notes.find(({ id }) => id === hit?.dataset.note);
    if (note) this.#editNote(note);
  }

  // Moving

  /** @param {number} page */
  #turnTo(page) {
    const pages = (this.tab && peekPaper(this.tab.paper)?.pages) ?? page;
    this.view.goTo(Math.min(Math.max(1, page), pages));
    this.#showPage(this.view.page);
  }

  /**
   * Goes to another place of the paper; Back returns. The span is marked. share: of the page's height, without a span.
   * @param {number} page @param {Span | null} span @param {number} [share]
   */
  #jump(page, span, share = 0) {
    const { reading } = place.get();
    if (!this.tab || !reading) return;
    clearTimeout(this.#addressTimer);
    const here = { ...reading, page: this.view.page };
    openReading(here, { replace: true });
    this.#left.set(keyOf(here), { tab: this.tab, share: this.view.getShare() });
    const mark = span ? { from: span[0], to: span[1], words: undefined } : {};
    openReading({ ...here, page, ...mark }, { replace: false });
    if (!span) this.view.goTo(page, null, share);
    this.view.scroller.focus({ preventScroll: true });
  }

  /** @param {Lead} lead */
  #formatLead({ page, entry }) {
    const [from, to] = entry ?? [null, null];
    // Not “#…”: of a link out of view, screen readers would take that for a way past the content.
    return `./${formatPlace({ ...place.get(), reading: { paper: this.view.paper, page: page ?? 1, from, to } })}`;
  }

  /** @param {Lead} lead */
  async #findGoal(lead) {
    return findGoal(await getText(this.view.paper, lead.page ?? 1), lead);
  }

  /** @param {Lead} lead */
  async #followLead(lead) {
    const { page, uri } = lead;
    if (page !== null) {
      const { paper } = this.view;
      const goal = await this.#findGoal(lead).catch(() => null); // the page itself shows why
      const height = peekPaper(paper)?.sizes[page - 1]?.[1] ?? Infinity;
      if (this.view.paper === paper) this.#jump(page, goal?.span ?? null, (goal?.top ?? 0) / height);
      return;
    }
    const address = uri.replace(/^doi:\s*/i, ["https:", "", "doi.org", ""].join("/"));
    const isSure = await confirmAction(t("reader.link.title"), isolate(address), t("reader.link.open"));
    if (isSure) el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }).click();
  }

  #startFind() {
    if (!this.tab) return;
    const words = readSelection(this.view.root, this.view.getTexts())?.text ?? "";
    this.find.open(this.tab.paper, words.length < 100 ? joinLines(words) : "");
  }

  // What is selected

  #showSelectionSoon() {
    clearTimeout(this.#selectTimer);
    this.#selectTimer = setTimeout(() => this.#showSelection(), SELECT_MS);
  }

  #showSelection() {
    if (!this.isOpen || this.#isSelecting || this.selectionBar.node.contains(document.activeElement)) return;
    const selected = readSelection(this.view.root, this.view.getTexts());
    if (!selected) return this.selectionBar.hide();
    this.selectionBar.selected = selected;
    this.#placeSelectionBar(true);
  }

  /** @param {boolean} [isNew] */
  #placeSelectionBar(isNew = false) {
    const { selected, isOpen } = this.selectionBar;
    const range = getSelection()?.rangeCount ? getSelection()?.getRangeAt(0) : null;
    if (!selected || !range || range.collapsed || (!isOpen && !isNew)) return;
    const inside = this.selectionBar.node.offsetParent ?? this.pane;
    this.selectionBar.show(selected, range.getBoundingClientRect(), inside.getBoundingClientRect());
  }

  #leaveSelection() {
    this.selectionBar.hide();
    getSelection()?.removeAllRanges();
    this.view.scroller.focus({ preventScroll: true });
  }

  /** Selects the quote on the page in view, or its first paragraph, from which the keyboard goes on. */
  #selectByKey() {
    const text = this.tab ? peekText(this.tab.paper, this.view.page) : null;
    if (!text) return;
    const span = this.#getFirstMark(text) ?? text.paragraphs[0] ?? [text.start, text.end];
    selectWords(this.view.root, span[0], span[1]);
  }

  /** @param {Selected} selected @param {string} question */
  #ask(selected, question) {
    if (!this.tab) return;
    const asked = { paper: this.tab.paper, ...selected };
    selection.set(asked);
    this.#leaveSelection();
    if (narrow.matches) closeReading();
    this.links.ask(asked, question);
  }

  /** @param {Selected} selected @param {Api.NoteJson["colour"]} colour */
  async #highlight({ start, end, text }, colour) {
    const paper = this.tab?.paper;
    if (!paper) return;
    this.#leaveSelection();
    try {
      await api.addNote({ quotes: [{ paper, start, end, quote: text }], colour });
      showToast(t("reader.highlighted"));
    } catch (thrown) {
      showFailure(thrown);
    }
    await this.refreshNotes();
  }

  /** @param {Selected} selected */
  #startNote({ start, end, text }) {
    const paper = this.tab?.paper;
    this.#leaveSelection();
    this.#note = "";
    if (paper) this.card.write({ paper, start, end, quote: text, page: 0, area: null });
  }

  /** @param {"page" | "area" | "paper"} what */
  #noteWithoutWords(what) {
    if (what === "area") this.#armArea();
    else this.#write(what === "page" ? this.view.page : 0, null);
  }

  /** A note on a page, an area of it, or the whole paper (0). @param {number} page @param {number[] | null} area */
  #write(page, area) {
    this.#note = "";
    if (this.tab) this.card.write({ paper: this.tab.paper, start: 0, end: 0, quote: "", page, area });
  }

  /** @param {number} page */
  #getTurn(page) {
    const { turns = {} } = this.tab ?? {};
    return turns[page] ?? turns[0] ?? 0;
  }

  /** Turns the page in view, or all, by a quarter; kept with the paper's tab. @param {boolean} isAll */
  #turn(isAll) {
    const { tab } = this;
    if (!tab) return;
    const { page } = this.view;
    const turn = (this.#getTurn(page) + 90) % 360;
    tab.turns = isAll ? { 0: turn } : { ...tab.turns, [page]: turn };
    this.tabs.put(tab);
    this.view.show(tab.paper, this.view.list.items.length, page);
    this.view.goTo(page);
  }

  /** @param {Selected} selected @param {import("./citing.js").Format} format */
  async #copy({ text, page }, format) {
    if (!this.tab) return;
    try {
      const { reference, bibtex } = await getPaper(this.tab.paper);
      await copyText(formatQuoted({ text, sources: [{ page, reference, bibtex }] }, format), t("reader.quote"));
    } catch (thrown) {
      showFailure(thrown);
    }
    this.#leaveSelection();
  }

  /** Copying gives the words as the library has them. @param {ClipboardEvent} event */
  #copyWords(event) {
    const selected = readSelection(this.view.root, this.view.getTexts());
    if (!selected || event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement) return;
    event.clipboardData?.setData("text/plain", selected.text);
    event.preventDefault();
  }

  #copyCitation() {
    const { tab } = this;
    const details = tab ? peekPaper(tab.paper) : null;
    if (!tab || !details) return;
    const { page } = this.view;
    const text = peekText(tab.paper, page);
    const span = text && !tab.isPassage ? locate(text, tab.mark) : null;
    const quote = text && span ? getSpanText(text, ...span) : "";
    copyText(formatQuoted({ text: quote, sources: [{ page, ...details }] }, "plain"), t("reader.citation"));
  }

  #copyBibtex() {
    const details = this.tab ? peekPaper(this.tab.paper) : null;
    if (details) copyText(details.bibtex, t("reader.bibtex"));
  }

  // Keys

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      return this.#startFind();
    }
    const isTyping = event.target instanceof Element && event.target.closest("input, textarea, select");
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") return this.#handleEscape(event);
    if (isTyping) return;
    const action = this.#getAction(event);
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** @param {KeyboardEvent} event @returns {(() => void) | null} */
  #getAction(event) {
    const { view } = this;
    // On a page wider than the reader, the arrow keys scroll; with Shift they extend the selection.
    const isSideways = view.scroller.scrollWidth > view.scroller.clientWidth + 1 && view.zoom !== "text";
    const turns = !event.shiftKey && !isSideways;
    const isOnPages = event.target === view.scroller;
    switch (event.key) {
      case "ArrowLeft":
        return turns ? () => this.#turnTo(view.page - 1) : null;
      case "ArrowRight":
        return turns ? () => this.#turnTo(view.page + 1) : null;
      case "+":
        return () => view.zoomBy(1);
      case "-":
        return () => view.zoomBy(-1);
      case "s":
        return () => this.#selectByKey();
      case "Enter":
        return isOnPages && this.selectionBar.isOpen ? () => this.selectionBar.focus() : null;
      default:
        return null;
    }
  }

  /** @param {KeyboardEvent} event */
  #handleEscape(event) {
    if (this.pane.querySelector(".menu:popover-open")) return; // the browser closes it
    event.preventDefault();
    event.stopPropagation();
    if (this.selectionBar.isOpen) this.#leaveSelection();
    else if (this.card.isOpen) this.card.close();
    else if (this.find.isOpen) this.find.close();
    else closeReading();
  }
}

/** @param {import("../base/place.js").Reading} reading */
const keyOf = ({ paper, page, from }) => `${paper}/${page}/${from}`;

/** @type {Reader} */
let reader;

/** @param {Links} links */
export function setUpReader(links) {
  reader = new Reader(links);
}

/** Opens a page beside what is shown, with its quote marked. @param {Target} target */
export function openAt(target) {
  reader.links.opened(target);
  reader.open(target);
}

/**
 * A link that opens a page beside what is shown; its address has the page of the paper.
 * @param {Target} target @param {Record<string, any>} attributes @param {...import("../base/dom.js").Children} children
 */
export function makePageLink(target, attributes, ...children) {
  const { paper, page, from = null, to = null, quote } = target;
  const reading = { paper, page, from, to, words: quote ? checksum(quote) : undefined };
  const href = linkTo({ view: "paper", id: paper, reading });
  return makeLink(href, ({ currentTarget }) => openAt({ ...target, opener: currentTarget }), attributes, ...children);
}

/** A link that opens a passage. @param {Passage} hit */
export const makeHitLink = (hit) =>
  makePageLink(toTarget(hit), { class: "source" }, isolate(getTitle(hit)), ", ", keepTogether(formatPages(hit.pages)));

/** The first page of a passage. It is marked on each of its pages: it may continue on the next one. */
/** @param {Passage} hit @returns {Target} */
export function toTarget(hit) {
  const { paper, title, file, pages, text, page_breaks: breaks = [], span } = hit;
  const [page] = pages;
  const [from, to] = span ?? [null, null];
  const chars = [...text];
  const starts = [0, ...breaks];
  const marks = span
    ? []
    : starts.flatMap((start, at) =>
        splitPassage(chars.slice(start, starts[at + 1]).join("")).map((quote) => ({ page: page + at, quote })),
      );
  return { paper, page, from, to, marks, passage: true, title, file };
}

/**
 * The text of a passage on one page in pieces, each of which is found if the others have changed.
 * @param {string} text
 */
function splitPassage(text) {
  const pieces = text.split(/(?<=[.!?:])\s+|\n{2,}/).filter((piece) => piece.trim().length > 20);
  const each = Math.ceil(pieces.length / MAX_PIECES) || 1;
  return pieces.flatMap((_, at) => (at % each ? [] : [pieces.slice(at, at + each).join(" ")]));
}

/** The element that opened the page was rendered again. @param {Element} before @param {HTMLElement} after */
export function moveOpener(before, after) {
  if (reader.opener !== before) return;
  reader.opener = after;
  after.classList.add("shown");
}

export const closeReader = () => closeReading();

export const isReaderOpen = () => reader.isOpen;

/** Notes were changed elsewhere. */
export const refreshNotes = () => reader.refreshNotes();

/**
 * Loads pages that may be opened next, such as those that an answer cites.
 * @param {{paper: string, page: number}[]} pages
 */
export const prefetch = (pages) => reader.view.prefetch(pages);
