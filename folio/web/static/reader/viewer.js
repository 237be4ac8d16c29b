// The viewer: the picture of a cited page, scrolled to the marked quote.

import * as api from "../base/api.js";
import { byId, copyText, el, isolate, makeButton, makeIcon, renderProblem } from "../base/dom.js";
import { enterPanel, leavePanel } from "../base/panels.js";
import { library } from "../base/state.js";
import { checkZoteroLink, joinLines } from "../base/text.js";

const dialog = byId("viewer");
const narrow = matchMedia("(max-width: 859px)");
const ZOOMS = [1, 1.25, 1.5, 2, 3]; // width of the page / width of the viewer
const MAX_FIT = 2; // zoom when the text is fitted to the width
const SCAN_WIDTH = 1000; // pixels; wider pictures are scaled down before they are scanned
const MAX_QUOTES = 12; // a passage is split into at most this many
const MARK = [255, 232, 64]; // the yellow of folio/pdf/render.py on white paper
const DARK_MARK = [127, 116, 32]; // and on black paper

let open = null; // {paper, page, title, file, marks, passage, from}: what was opened
let details = null; // the paper, from the server
let page = 1; // the page that is shown
let zoom = null; // null: fit the text to the width
let layout = { mark: null, left: 0, right: 1 }; // first mark and text edges, as fractions of the picture
const COLUMN_GAP = 0.012; // of the width: what is blank that far, beside several lines, lies between columns
const BESIDE = [0.012, 0.05]; // of the height, above and below the first mark: some lines of its column
let loading = null;
const known = new Map(); // papers by id

/** The texts marked on a page; null for a page without marks. */
const getQuotes = (at) => open.marks?.get(at) ?? (at === open.page ? [] : null);

/**
 * Opens a page. marks: page -> the texts that are marked on it, on others of its paper too. `from` gets the focus back
 * on closing.
 */
export function openPage(wanted) {
  const same = open?.paper === wanted.paper;
  open?.from.classList.remove("shown");
  // An answer keeps the title that its paper had then.
  open = { ...wanted, title: library.get().papers.get(wanted.paper)?.title ?? wanted.title };
  open.from.classList.add("shown");
  page = wanted.page;
  if (!same || !known.has(wanted.paper)) details = known.get(wanted.paper) ?? null;
  renderName();
  if (!dialog.open) {
    // On a narrow screen the page covers the answer.
    if (narrow.matches) {
      dialog.showModal();
      enterPanel(dialog, closeViewer);
    } else dialog.show();
    document.body.classList.add("with-viewer");
  }
  byId("viewer-page").focus({ preventScroll: true });
  if (!details) loadDetails(wanted.paper);
  showPage();
}

/** Opens the first page of a passage. It is marked in pieces, on each of its pages: it may continue on the next one. */
export function openPassage(hit, from) {
  const [first] = hit.pages;
  const text = [...hit.text];
  const starts = [0, ...hit.page_breaks];
  const pages = starts.map((start, at) => text.slice(start, starts[at + 1]).join(""));
  const marks = new Map(pages.map((onPage, at) => [first + at, splitPassage(onPage)]));
  openPage({ paper: hit.paper, page: first, title: hit.title, file: hit.file, marks, passage: true, from });
}

/** The text of a passage on one page in pieces. */
function splitPassage(text) {
  const pieces = text.split(/(?<=[.!?:])\s+|\n{2,}/).filter((piece) => piece.trim().length > 20);
  const each = Math.ceil(pieces.length / MAX_QUOTES) || 1;
  const quotes = [];
  for (let at = 0; at < pieces.length; at += each) quotes.push(pieces.slice(at, at + each).join(" "));
  return quotes;
}

/** Called when the element that opened the page was rendered again. */
export function replaceOpener(before, after) {
  if (open?.from !== before) return;
  open.from = after;
  after.classList.add("shown");
}

/** Closes the viewer and restores the focus. */
export function closeViewer() {
  dialog.close();
}

export const isViewerOpen = () => dialog.open;

async function loadDetails(id) {
  try {
    known.set(id, await api.getPaper(id));
  } catch (thrown) {
    if (open?.paper === id) showError(api.toApiError(thrown));
    return;
  }
  if (open?.paper !== id) return;
  details = known.get(id);
  renderPageBar();
}

function renderName() {
  byId("viewer-title").replaceChildren(isolate(open.title || open.file));
  byId("viewer-file").replaceChildren(open.title ? isolate(open.file) : "");
}

function renderPageBar() {
  const label = details?.labels[page - 1];
  const of = details ? ` of ${details.pages}` : "";
  const printed = label && label !== String(page) ? [" (printed ", isolate(label), ")"] : [];
  byId("page-name").replaceChildren(`p. ${page}${of}`, ...printed);
  byId("page-previous").disabled = page <= 1;
  byId("page-next").disabled = details !== null && page >= details.pages;
  byId("open-pdf").href = api.pdfUrl(open.paper, page);
  const zotero = details?.zotero ? checkZoteroLink(`${details.zotero}?page=${page}`) : "";
  byId("open-zotero").hidden = !zotero;
  if (zotero) byId("open-zotero").href = zotero;
  byId("copy-text").disabled = byId("copy-bibtex").disabled = details === null;
}

async function showPage() {
  renderPageBar();
  loading?.abort();
  loading = new AbortController();
  const { signal } = loading;
  const quotes = getQuotes(page);
  const picture = byId("picture");
  const sheet = byId("sheet");
  byId("viewer-problem").replaceChildren();
  byId("pointer").hidden = true;
  sheet.classList.add("waiting");
  renderQuotes(quotes ? [] : null);
  let drawn;
  try {
    drawn = await api.getPicture(open.paper, page, quotes ?? [], signal);
    if (signal.aborted) return;
    const url = URL.createObjectURL(drawn.blob);
    if (picture.src) URL.revokeObjectURL(picture.src);
    picture.src = url;
    await picture.decode();
  } catch (thrown) {
    if (signal.aborted || api.isAbort(thrown)) return;
    sheet.hidden = true;
    return showError(api.toApiError(thrown));
  }
  if (signal.aborted) return;
  sheet.classList.remove("waiting");
  sheet.hidden = false;
  const found = drawn.marked.includes(true);
  picture.alt = `Page ${page} of ${open.title || open.file}${found ? ", the quote marked in yellow" : ""}`;
  renderQuotes(quotes ? drawn.marked : null);
  layout = scanPicture(picture, found);
  positionPage();
}

function showError(error) {
  const retry = () => {
    if (!details) loadDetails(open.paper);
    showPage();
  };
  // If the paper or its file is missing, a retry does not help.
  byId("viewer-problem").replaceChildren(renderProblem(error, api.isPermanent(error) ? null : retry));
}

/** Shows the quotes above the page, and whether some could not be marked. marked is null if another page is shown. */
function renderQuotes(marked) {
  const box = byId("viewer-quote");
  box.replaceChildren();
  box.hidden = !getQuotes(open.page).length;
  if (box.hidden) return;
  if (marked === null) {
    const back = () => turnPage(open.page - page);
    box.append(makeButton("button quiet", back, makeIcon("again"), `Back to the quote on p. ${open.page}`));
    return;
  }
  const missed = marked.filter((found) => !found).length;
  const quotes = getQuotes(page).map((quote) => el("p", {}, isolate(joinLines(quote))));
  if (!open.passage) box.append(el("blockquote", { tabindex: "0" }, quotes));
  const none = missed === marked.length;
  if (missed && (none || !open.passage)) {
    const what = open.passage ? "The passage" : marked.length === 1 ? "The quote" : none ? "The quotes" : "A quote";
    const missing = `${what} could not be marked on this page. Look for the words yourself.`;
    box.append(el("p", { class: "note" }, makeIcon("warning"), missing));
  }
  box.hidden = !box.childElementCount;
}

/** Finds the left and right edges of the text and the topmost mark, as fractions of the picture. */
function scanPicture(picture, marked) {
  const width = Math.min(picture.naturalWidth, SCAN_WIDTH);
  const height = Math.round((picture.naturalHeight / picture.naturalWidth) * width);
  const canvas = el("canvas", { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingEnabled = false; // otherwise the colours at the edges mix
  context.drawImage(picture, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const findMark = (colour) => findFirstMark(data, width, height, colour);
  const mark = marked ? (findMark(MARK) ?? findMark(DARK_MARK)) : null;
  if (mark) mark.column = findColumn(data, width, height, mark);
  return { mark, ...findTextEdges(data, width, height) };
}

/** Finds where the column begins that a mark stands in: left of it is a gap beside several lines. */
function findColumn(data, width, height, { top, left }) {
  const [above, below] = BESIDE;
  const from = Math.max(0, Math.floor((top - above) * height));
  const to = Math.min(height, Math.ceil((top + below) * height));
  const isBlank = (x) => {
    for (let y = from; y < to; y += 1) if (data[(y * width + x) * 4] <= 160) return false;
    return true;
  };
  let start = Math.round(left * width);
  for (let x = start; x >= 0 && start - x < COLUMN_GAP * width; x -= 1) if (!isBlank(x)) start = x;
  return start / width;
}

/** Finds the topmost mark by its colour: the API does not give its position. Returns {top, left}, or null. */
function findFirstMark(data, width, height, [red, green, blue]) {
  const isNear = (at) =>
    Math.abs(data[at] - red) < 8 && Math.abs(data[at + 1] - green) < 8 && Math.abs(data[at + 2] - blue) < 8;
  for (let y = 0; y < height; y += 1) {
    let run = 0;
    for (let x = 0; x < width; x += 1) {
      run = isNear((y * width + x) * 4) ? run + 1 : 0;
      if (run >= 6) return { top: y / height, left: (x - run) / width };
    }
  }
  return null;
}

/** Finds the first and the last column that is not blank. */
function findTextEdges(data, width, height) {
  let left = width;
  let right = 0;
  for (let y = 0; y < height; y += 2) {
    for (let x = 0; x < width; x += 1) {
      if (data[(y * width + x) * 4] > 160 || (x >= left && x <= right)) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
    }
  }
  return left < right ? { left: left / width, right: right / width } : { left: 0, right: 1 };
}

/** Sets the width of the page and scrolls to the mark. */
function positionPage() {
  const scroller = byId("viewer-page");
  const sheet = byId("sheet");
  const fit = Math.max(1, Math.min(MAX_FIT, 1 / (layout.right - layout.left + 0.06)));
  const factor = zoom ?? fit;
  sheet.style.setProperty("--zoom", factor);
  const size = `${Math.round(factor * 100)}%`;
  byId("zoom-fit").textContent = size;
  byId("zoom-fit").setAttribute("aria-label", `${size}, fit text to width`);
  byId("zoom-out").disabled = factor <= ZOOMS[0];
  byId("zoom-in").disabled = factor >= ZOOMS.at(-1);
  const { mark } = layout;
  const pointer = byId("pointer");
  pointer.hidden = !mark;
  if (mark) {
    pointer.style.setProperty("top", `${mark.top * 100}%`);
    pointer.style.setProperty("left", `${mark.column * 100}%`);
  }
  const from = zoom === null || !mark ? layout.left : mark.left;
  scroller.scrollTop = mark ? mark.top * sheet.offsetHeight - scroller.clientHeight / 4 : 0;
  scroller.scrollLeft = (from - 0.03) * sheet.offsetWidth + sheet.offsetLeft;
}

function turnPage(by) {
  const to = page + by;
  if (!open || by === 0 || to < 1 || (details && to > details.pages)) return;
  page = to;
  showPage();
}

/** by: +1 for the next larger size, -1 for the next smaller one. */
function zoomBy(by) {
  const current = Number(byId("sheet").style.getPropertyValue("--zoom"));
  const sizes = by > 0 ? ZOOMS : ZOOMS.toReversed();
  zoom = sizes.find((size) => (size - current) * by > 0.01) ?? zoom;
  positionPage();
}

function zoomToFit() {
  zoom = null;
  positionPage();
}

function formatCitation() {
  const reference = `${details.reference.replace(/[.\s]+$/, "")}, p. ${page}.`;
  const quotes = open.passage ? [] : (getQuotes(page) ?? []);
  return quotes.length ? `“${quotes.map(joinLines).join(" … ")}” ${reference}` : reference;
}

export function setUpViewer() {
  byId("viewer-close").onclick = closeViewer;
  byId("page-previous").onclick = () => turnPage(-1);
  byId("page-next").onclick = () => turnPage(1);
  byId("zoom-out").onclick = () => zoomBy(-1);
  byId("zoom-in").onclick = () => zoomBy(1);
  byId("zoom-fit").onclick = zoomToFit;
  byId("copy-text").onclick = () => copyText(formatCitation(), "Citation");
  byId("copy-bibtex").onclick = () => copyText(details.bibtex, "BibTeX entry");
  dialog.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const action = {
      ArrowLeft: () => turnPage(-1),
      ArrowRight: () => turnPage(1),
      "+": () => zoomBy(1),
      "-": () => zoomBy(-1),
    }[event.key];
    // On a page wider than the viewer, the arrow keys scroll.
    const sideways = event.key.startsWith("Arrow") && zoom > 1;
    if (!action || sideways) return;
    event.preventDefault();
    action();
  });
  dialog.addEventListener("close", () => {
    if (dialog.open) return; // it was reopened, see below
    leavePanel(dialog);
    document.body.classList.remove("with-viewer");
    loading?.abort();
    const { from } = open;
    open = null;
    from.classList.remove("shown");
    (from.isConnected ? from : byId("question")).focus();
  });
  library.onChange(() => {
    known.clear(); // one of them may have been edited
    if (!open) return;
    open.title = library.get().papers.get(open.paper)?.title ?? open.title;
    renderName();
    loadDetails(open.paper);
  });
  narrow.addEventListener("change", () => {
    if (!dialog.open) return;
    const kept = open;
    leavePanel(dialog);
    dialog.close();
    openPage(kept);
  });
}
