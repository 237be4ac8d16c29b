// A cited page beside the answer: its picture, scrolled to where the quote is marked.

import * as api from "./api.js";
import { button, byId, copy, el, icon, oneLine, problem, words } from "./dom.js";

const dialog = byId("viewer");
const narrow = matchMedia("(max-width: 859px)");
const ZOOMS = [1, 1.25, 1.5, 2, 3]; // widths of the page, in widths of its room
const MOST_FIT = 2;
const SCANNED = 1000; // pixels of width that a picture is looked at in
const PIECES = 12; // quotes that a passage is cut into at most
const MARK = [255, 232, 64]; // the yellow of folio/pdf/render.py, on white
const DARK_MARK = [127, 116, 32]; // and on black

let open = null; // {paper, page, title, file, quotes, passage, from}: what was asked for
let details = null; // the paper, from the server
let page = 1; // what is shown
let zoom = null; // null: the text fills the room
let seen = { mark: null, left: 0, right: 1 }; // where the first mark and the text stand, as shares of the picture
let loading = null;
const known = new Map(); // papers by id

/** Opens a page with its quotes marked. `from` gets the focus back. */
export function openPage(wanted) {
  const same = open?.paper === wanted.paper;
  open?.from.classList.remove("shown");
  open = wanted;
  open.from.classList.add("shown");
  page = wanted.page;
  if (!same) details = known.get(wanted.paper) ?? null;
  byId("viewer-title").replaceChildren(words(wanted.title || wanted.file));
  byId("viewer-file").replaceChildren(wanted.title ? words(wanted.file) : "");
  if (!dialog.open) {
    // Where there is no room beside the answer the page lies over it.
    if (narrow.matches) dialog.showModal();
    else dialog.show();
    document.body.classList.add("with-viewer");
  }
  byId("viewer-page").focus({ preventScroll: true });
  if (!details) learn(wanted.paper);
  show();
}

/** Opens the page that a passage begins on. It is marked piece by piece, as it may go on overleaf. */
export function openPassage(hit, from) {
  const pieces = hit.text.split(/(?<=[.!?:])\s+|\n{2,}/).filter((piece) => piece.trim().length > 20);
  const each = Math.ceil(pieces.length / PIECES) || 1;
  const quotes = [];
  for (let at = 0; at < pieces.length; at += each) quotes.push(pieces.slice(at, at + each).join(" "));
  openPage({ paper: hit.paper, page: hit.pages[0], title: hit.title, file: hit.file, quotes, passage: true, from });
}

/** Closes it and gives the focus back. */
export function closeViewer() {
  dialog.close();
}

export const viewerIsOpen = () => dialog.open;

async function learn(id) {
  try {
    known.set(id, await api.paper(id));
  } catch (thrown) {
    if (open?.paper === id) say(api.shown(thrown));
    return;
  }
  if (open?.paper !== id) return;
  details = known.get(id);
  nameThePage();
}

function nameThePage() {
  const label = details?.labels[page - 1];
  const of = details ? ` of ${details.pages}` : "";
  const printed = label && label !== String(page) ? [" (printed ", words(label), ")"] : [];
  byId("page-name").replaceChildren(`p. ${page}${of}`, ...printed);
  byId("page-previous").disabled = page <= 1;
  byId("page-next").disabled = details !== null && page >= details.pages;
  byId("open-pdf").href = api.pdfOf(open.paper, page);
  byId("copy-text").disabled = byId("copy-bibtex").disabled = details === null;
}

async function show() {
  nameThePage();
  loading?.abort();
  loading = new AbortController();
  const { signal } = loading;
  const cited = page === open.page;
  const quotes = cited ? open.quotes : [];
  const picture = byId("picture");
  const sheet = byId("sheet");
  byId("viewer-problem").replaceChildren();
  byId("pointer").hidden = true;
  sheet.classList.add("waiting");
  quoteBox(cited ? [] : null);
  let drawn;
  try {
    drawn = await api.picture(open.paper, page, quotes, signal);
    if (signal.aborted) return;
    const url = URL.createObjectURL(drawn.blob);
    if (picture.src) URL.revokeObjectURL(picture.src);
    picture.src = url;
    await picture.decode();
  } catch (thrown) {
    if (signal.aborted || api.isAbort(thrown)) return;
    sheet.hidden = true;
    return say(api.shown(thrown));
  }
  if (signal.aborted) return;
  sheet.classList.remove("waiting");
  sheet.hidden = false;
  const found = drawn.marked.includes(true);
  picture.alt = `Page ${page} of ${open.title || open.file}${found ? ", the quote marked in yellow" : ""}`;
  quoteBox(cited ? drawn.marked : null);
  seen = look(picture, found);
  place();
}

function say(error) {
  const retry = () => {
    if (!details) learn(open.paper);
    show();
  };
  // A paper that is gone, or its file, does not come back by asking again.
  byId("viewer-problem").replaceChildren(problem(error, api.isLasting(error) ? null : retry));
}

/** The quotes above the page, and which of them could not be marked. null: another page is shown. */
function quoteBox(marked) {
  const box = byId("viewer-quote");
  box.replaceChildren();
  box.hidden = !open.quotes.length;
  if (box.hidden) return;
  if (marked === null) {
    const back = () => turn(open.page - page);
    box.append(button("button quiet", back, icon("again"), `Back to the quote on p. ${open.page}`));
    return;
  }
  const missed = marked.filter((found) => !found).length;
  const quotes = open.quotes.map((quote) => el("p", {}, words(oneLine(quote))));
  if (!open.passage) box.append(el("blockquote", { tabindex: "0" }, quotes));
  const none = missed === marked.length;
  if (missed && (none || !open.passage)) {
    const what = open.passage ? "The passage" : marked.length === 1 ? "The quote" : none ? "The quotes" : "A quote";
    const missing = `${what} could not be marked on the picture: look for the words.`;
    box.append(el("p", { class: "note" }, icon("warning"), missing));
  }
  box.hidden = !box.childElementCount;
}

/** Where the text of a page begins and ends across, and where its highest mark is, as shares of the picture. */
function look(picture, marked) {
  const width = Math.min(picture.naturalWidth, SCANNED);
  const height = Math.round((picture.naturalHeight / picture.naturalWidth) * width);
  const canvas = el("canvas", { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingEnabled = false; // else the colours at the edges mix
  context.drawImage(picture, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const mark = marked ? (firstMark(data, width, height, MARK) ?? firstMark(data, width, height, DARK_MARK)) : null;
  return { mark, ...inked(data, width, height) };
}

/** The API tells whether a quote is marked and not where: its colour does. {top, left}, or null where none shows. */
function firstMark(data, width, height, [red, green, blue]) {
  const near = (at) =>
    Math.abs(data[at] - red) < 8 && Math.abs(data[at + 1] - green) < 8 && Math.abs(data[at + 2] - blue) < 8;
  for (let y = 0; y < height; y += 1) {
    let run = 0;
    for (let x = 0; x < width; x += 1) {
      run = near((y * width + x) * 4) ? run + 1 : 0;
      if (run >= 6) return { top: y / height, left: (x - run) / width };
    }
  }
  return null;
}

/** The first and the last column that is not blank. */
function inked(data, width, height) {
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

/** How wide the page is drawn, and which part of it is in view. */
function place() {
  const scroller = byId("viewer-page");
  const sheet = byId("sheet");
  const fit = Math.max(1, Math.min(MOST_FIT, 1 / (seen.right - seen.left + 0.06)));
  const factor = zoom ?? fit;
  sheet.style.setProperty("--zoom", factor);
  const size = `${Math.round(factor * 100)} %`;
  byId("zoom-fit").textContent = size;
  byId("zoom-fit").setAttribute("aria-label", `${size}, fit the text to the width`);
  byId("zoom-out").disabled = factor <= ZOOMS[0];
  byId("zoom-in").disabled = factor >= ZOOMS.at(-1);
  const { mark } = seen;
  const pointer = byId("pointer");
  pointer.hidden = !mark;
  if (mark) {
    pointer.style.setProperty("top", `${mark.top * 100}%`);
    pointer.style.setProperty("left", `${seen.left * 100}%`);
  }
  const from = zoom === null || !mark ? seen.left : mark.left;
  scroller.scrollTop = mark ? mark.top * sheet.offsetHeight - scroller.clientHeight / 4 : 0;
  scroller.scrollLeft = (from - 0.03) * sheet.offsetWidth + sheet.offsetLeft;
}

function turn(by) {
  const to = page + by;
  if (!open || by === 0 || to < 1 || (details && to > details.pages)) return;
  page = to;
  show();
}

/** by: +1 for the next larger size, -1 for the next smaller one. */
function zoomBy(by) {
  const now = Number(byId("sheet").style.getPropertyValue("--zoom"));
  const sizes = by > 0 ? ZOOMS : ZOOMS.toReversed();
  zoom = sizes.find((size) => (size - now) * by > 0.01) ?? zoom;
  place();
}

function zoomToFit() {
  zoom = null;
  place();
}

function citation() {
  const reference = `${details.reference.replace(/[.\s]+$/, "")}, p. ${page}.`;
  const quoted = page === open.page && !open.passage && open.quotes.length;
  return quoted ? `“${open.quotes.map(oneLine).join(" … ")}” ${reference}` : reference;
}

export function setUpViewer() {
  byId("viewer-close").onclick = closeViewer;
  byId("page-previous").onclick = () => turn(-1);
  byId("page-next").onclick = () => turn(1);
  byId("zoom-out").onclick = () => zoomBy(-1);
  byId("zoom-in").onclick = () => zoomBy(1);
  byId("zoom-fit").onclick = zoomToFit;
  byId("copy-text").onclick = () => copy(citation(), "Citation");
  byId("copy-bibtex").onclick = () => copy(details.bibtex, "BibTeX entry");
  dialog.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const does = {
      ArrowLeft: () => turn(-1),
      ArrowRight: () => turn(1),
      "+": () => zoomBy(1),
      "-": () => zoomBy(-1),
    }[event.key];
    // A page that was made wider than its room is scrolled sideways by the arrows.
    const sideways = event.key.startsWith("Arrow") && zoom > 1;
    if (!does || sideways) return;
    event.preventDefault();
    does();
  });
  dialog.addEventListener("close", () => {
    if (dialog.open) return; // only moved, see below
    document.body.classList.remove("with-viewer");
    loading?.abort();
    const { from } = open;
    open = null;
    from.classList.remove("shown");
    (from.isConnected ? from : byId("question")).focus();
  });
  narrow.addEventListener("change", () => {
    if (!dialog.open) return;
    const kept = open;
    dialog.close();
    openPage(kept);
  });
}
