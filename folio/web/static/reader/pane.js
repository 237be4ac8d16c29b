// The elements of the reader: its bars, and the edge by which it is resized.

import { el, makeButton, makeIcon, makeIconButton, recall, remember } from "../base/dom.js";
import { addMenu } from "../base/menu.js";
import { listPaperQuestions } from "../paper/questions.js";
import { t } from "../base/strings.js";
import { ACTUAL } from "./zoom.js";

const NARROWEST = 22; // percent of the window
const WIDEST = 75;
const STEP = 2;
const ZOOMS = [50, 75, 100, 125, 150, 200, 300, 400];
const FITS = /** @type {const} */ ({ text: "reader.fit.text", width: "reader.fit.width", page: "reader.fit.page" });

/**
 * @typedef {object} Controls
 * @property {() => void} close
 * @property {(page: number) => void} goTo
 * @property {() => void} toggleContents
 * @property {() => void} find
 * @property {() => void} toggleText
 * @property {() => void} toggleDark
 * @property {(by: number) => void} zoomBy
 * @property {(zoom: import("./zoom.js").Fit | number) => void} setZoom
 * @property {() => void} copyCitation
 * @property {() => void} copyBibtex
 * @property {(what: "page" | "area" | "paper") => void} note
 * @property {(isAll: boolean) => void} turn
 * @property {(asked: import("../paper/questions.js").Asked) => void} askPaper
 */

/** A button that is pressed or not. @param {string} icon @param {string} label @param {() => void} press */
function makeToggle(icon, label, press) {
  const node = makeIconButton(icon, label, press);
  node.setAttribute("aria-pressed", "false");
  return node;
}

/** @param {Controls} controls */
export function buildHead({ close }) {
  const title = el("h2", { id: "reader-title" });
  const file = el("p", { class: "reader-file" });
  const button = makeIconButton("close", t("reader.close"), close, "Escape");
  return {
    title,
    file,
    node: el("div", { class: "reader-head" }, el("div", { class: "reader-name" }, title, file), button),
  };
}

/** @param {Controls} controls */
export function buildBar(controls) {
  const contents = makeToggle("menu", t("reader.contents"), controls.toggleContents);
  const previous = makeIconButton("previous", t("reader.previous"), () => controls.goTo(getPage() - 1), "ArrowLeft");
  const next = makeIconButton("next", t("reader.next"), () => controls.goTo(getPage() + 1), "ArrowRight");
  const field = el("input", {
    type: "text",
    class: "page-field",
    inputmode: "numeric",
    "aria-label": t("reader.number"),
    maxlength: "7",
    autocomplete: "off",
  });
  const go = (/** @type {Event} */ event) => {
    event.preventDefault();
    const wanted = Number(field.value.trim());
    if (Number.isInteger(wanted)) controls.goTo(wanted);
    field.select();
  };
  let page = 1;
  const getPage = () => page;
  const setPage = (/** @type {number} */ number) => {
    page = number;
    if (document.activeElement !== field) field.value = String(number);
  };
  field.addEventListener("blur", () => (field.value = String(page)));
  const of = el("span", { class: "page-of" });
  const form = el("form", { class: "page-form", onsubmit: go }, field, of);
  const find = makeIconButton("search", t("reader.find"), controls.find, "Control+F");
  const text = makeToggle("text", t("reader.text"), controls.toggleText);
  const dark = makeToggle("theme", t("reader.dark"), controls.toggleDark);
  const zoomOut = makeIconButton("minus", t("reader.zoom.out"), () => controls.zoomBy(-1), "-");
  const zoomIn = makeIconButton("plus", t("reader.zoom.in"), () => controls.zoomBy(1), "+");
  for (const node of [zoomOut, zoomIn]) node.classList.add("zoom-by");
  for (const node of [previous, next]) node.classList.add("turn-page");
  const zoom = buildZoom(controls);
  const more = addMenu(
    makeIconButton("more", t("reader.more"), () => {}),
    t("reader.more"),
    (close) => {
      const item = (/** @type {import("../base/strings.js").Key} */ key, /** @type {() => void} */ act) => {
        const run = () => {
          close();
          act();
        };
        return makeButton("button quiet", run, t(key));
      };
      const isAsText = text.getAttribute("aria-pressed") === "true"; // which has no areas, and is upright
      return [
        item("reader.note.page", () => controls.note("page")),
        item("reader.note.paper", () => controls.note("paper")),
        ...(isAsText ? [] : [item("reader.note.area", () => controls.note("area"))]),
        ...(isAsText ? [] : [item("reader.turn", () => controls.turn(false))]),
        ...(isAsText ? [] : [item("reader.turn.all", () => controls.turn(true))]),
        ...listPaperQuestions().map(({ text, asked }) => {
          const run = () => {
            close();
            controls.askPaper(asked);
          };
          return makeButton("button quiet", run, t("reader.ask_paper", { what: text }));
        }),
      ];
    },
  );
  const start = [contents, previous, form, next, el("span", { class: "gap" })];
  const parts = [...start, find, text, dark, ...more, zoomOut, zoom, zoomIn];
  const node = el("div", { class: "reader-bar" }, parts);
  return { node, contents, previous, next, of, text, dark, zoom, zoomOut, zoomIn, setPage };
}

/** @param {Controls} controls */
function buildZoom({ setZoom }) {
  const choose = () => {
    const fit = node.value === "text" || node.value === "width" || node.value === "page" ? node.value : null;
    setZoom(fit ?? (Number(node.value) / 100) * ACTUAL);
  };
  const node = el("select", { class: "zoom", "aria-label": t("reader.zoom"), onchange: choose, autocomplete: "off" });
  for (const [fit, key] of Object.entries(FITS)) node.append(el("option", { value: fit }, t(key)));
  for (const percent of ZOOMS) node.append(el("option", { value: percent }, `${percent}%`));
  node.append(el("option", { value: "other", hidden: true }));
  return node;
}

/** Shows the size of the pages. @param {HTMLSelectElement} node @param {import("./zoom.js").Fit | number} zoom */
export function showZoom(node, zoom) {
  const percent = typeof zoom === "number" ? String(Math.round((zoom / ACTUAL) * 100)) : zoom;
  const other = /** @type {HTMLOptionElement} */ (node.options[node.options.length - 1]);
  other.textContent = `${percent}%`;
  node.value = percent;
  if (node.selectedIndex < 0) node.value = "other";
}

/** @param {Controls} controls */
export function buildFoot({ copyCitation, copyBibtex }) {
  const link = (/** @type {Record<string, string>} */ given, /** @type {string} */ label) =>
    el("a", { class: "button quiet", ...given }, makeIcon("out"), label);
  const pdf = link({ target: "_blank", rel: "noopener" }, t("reader.pdf"));
  const zotero = link({}, t("reader.zotero"));
  const citation = makeButton("button quiet", copyCitation, makeIcon("copy"), t("reader.copy_citation"));
  const bibtex = makeButton("button quiet", copyBibtex, makeIcon("copy"), t("reader.copy_bibtex"));
  const node = el("div", { class: "reader-foot" }, pdf, zotero, citation, bibtex);
  return { node, pdf, zotero, citation, bibtex };
}

/**
 * The edge of the reader: it is dragged, or moved by the arrow keys.
 * @param {HTMLElement} columns the grid around it
 */
export function buildEdge(columns) {
  const node = el("div", {
    class: "reader-edge",
    role: "separator",
    tabindex: "0",
    "aria-orientation": "vertical",
    "aria-label": t("reader.width"),
    "aria-valuemin": NARROWEST,
    "aria-valuemax": WIDEST,
  });
  let width = 42;
  const resize = (/** @type {number} */ percent) => {
    width = Math.min(WIDEST, Math.max(NARROWEST, Math.round(percent)));
    columns.style.setProperty("--reader-width", `${width}vw`);
    node.setAttribute("aria-valuenow", String(width));
  };
  resize(Number(recall("reader-width")) || width);
  const keep = () => remember("reader-width", String(width));
  const isRtl = () => getComputedStyle(columns).direction === "rtl";
  node.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    const to = { Home: WIDEST, End: NARROWEST }[event.key];
    if (by === undefined && to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    resize(to ?? width + (isRtl() ? -(by ?? 0) : (by ?? 0)));
    keep();
  });
  node.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    node.setPointerCapture(event.pointerId);
  });
  node.addEventListener("pointermove", (event) => {
    if (!node.hasPointerCapture(event.pointerId)) return;
    resize(100 * (isRtl() ? event.clientX / innerWidth : 1 - event.clientX / innerWidth));
  });
  node.addEventListener("lostpointercapture", keep);
  return node;
}
