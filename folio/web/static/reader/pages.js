// The pages of papers as the reader needs them: details of papers, texts and pictures. What was used last is kept.

import * as api from "../base/api.js";
import { library } from "../base/state.js";

const MOST_PIXELS = 60e6; // of all kept pictures, about 240 MB once decoded
const MOST_TEXTS = 400;
const AHEAD = 2; // pictures drawn ahead at once

/** @type {Map<string, Promise<Api.PaperDetails>>} */
const details = new Map();
/** @type {Map<string, Api.PaperDetails>} */
const knownDetails = new Map();

/** The details of a paper, which are kept until `forgetPapers`. @param {string} paper */
export function getPaper(paper) {
  const known = details.get(paper);
  if (known) return known;
  const loading = api.getPaper(paper).then((loaded) => {
    if (details.get(paper) === loading) knownDetails.set(paper, loaded);
    return loaded;
  });
  loading.catch(() => details.delete(paper));
  details.set(paper, loading);
  return loading;
}

/** @param {string} paper */
export const peekPaper = (paper) => knownDetails.get(paper) ?? null;

/** Papers were edited: their details are asked for again. */
export function forgetPapers() {
  details.clear();
  knownDetails.clear();
}

/** Papers may have been read again, so that their texts have other offsets. @param {string[] | null} papers null: all */
export function forgetTexts(papers) {
  for (const name of [...texts.keys()]) {
    if (papers && !papers.includes(name.split("/")[0])) continue;
    texts.delete(name);
    knownTexts.delete(name);
  }
}

/** @param {string} paper @param {number} page */
const nameOf = (paper, page) => `${paper}/${page}`;

/** @type {Map<string, Promise<Api.PageText>>} */
const texts = new Map();
/** @type {Map<string, Api.PageText>} */
const knownTexts = new Map();

/**
 * The text of a page. how: AHEAD if nobody waits for it; who waits for a text that is being loaded so asks again.
 * @param {string} paper @param {number} page @param {RequestInit} [how]
 * @returns {Promise<Api.PageText>}
 */
export function getText(paper, page, how) {
  const name = nameOf(paper, page);
  const known = texts.get(name);
  if (known && (how || knownTexts.has(name) || !ahead.has(known))) return known;
  const loading = api.getPageText(paper, page, how).then((loaded) => {
    if (texts.get(name) === loading) knownTexts.set(name, loaded);
    return loaded;
  });
  if (how) ahead.add(loading);
  loading.catch(() => texts.get(name) === loading && texts.delete(name));
  texts.set(name, loading);
  for (const oldest of texts.keys()) {
    if (texts.size <= MOST_TEXTS) break;
    texts.delete(oldest);
    knownTexts.delete(oldest);
  }
  return loading;
}

/** The text of a page if it is here already. @param {string} paper @param {number} page */
export const peekText = (paper, page) => knownTexts.get(nameOf(paper, page)) ?? null;

/** What is being loaded though nobody waits for it. @type {WeakSet<Promise<unknown>>} */
const ahead = new WeakSet();

/** @typedef {{dpi: number, image: HTMLImageElement, pixels: number}} Picture */

/** @type {Map<string, Map<number, Picture>>} by page and resolution, the last used ones last */
const pictures = new Map();
/** @type {Map<string, Promise<Picture>>} */
const drawing = new Map();
let pixels = 0;

/**
 * A picture of a page that is here already: with this resolution, or the closest one.
 * @param {string} paper @param {number} page @param {number} dpi
 * @returns {Picture | null}
 */
export function peekPicture(paper, page, dpi) {
  const all = pictures.get(nameOf(paper, page));
  if (!all) return null;
  pictures.delete(nameOf(paper, page));
  pictures.set(nameOf(paper, page), all);
  const distance = (/** @type {Picture} */ one) => Math.abs(Math.log(one.dpi / dpi));
  return [...all.values()].reduce((one, other) => (distance(other) < distance(one) ? other : one));
}

/**
 * The decoded picture of a page. Throws ApiError. how: as in getText.
 * @param {string} paper @param {number} page @param {number} dpi @param {RequestInit} [how]
 * @returns {Promise<Picture>}
 */
export async function getPicture(paper, page, dpi, how) {
  const known = pictures.get(nameOf(paper, page))?.get(dpi);
  if (known) return known;
  const name = `${nameOf(paper, page)}@${dpi}`;
  const running = drawing.get(name);
  if (running && (how === api.AHEAD || !ahead.has(running))) {
    const drawn = await running.catch(() => null); // whoever asked first may have left
    if (drawn) return drawn;
  }
  const made = draw(paper, page, dpi, how);
  if (how === api.AHEAD) ahead.add(made);
  drawing.set(name, made);
  try {
    return await made;
  } finally {
    if (drawing.get(name) === made) drawing.delete(name);
  }
}

/** @param {string} paper @param {number} page @param {number} dpi @param {RequestInit} [how] */
async function draw(paper, page, dpi, how) {
  const blob = await api.getPagePicture(paper, page, dpi, how);
  const image = new Image();
  image.alt = "";
  image.draggable = false;
  image.src = URL.createObjectURL(blob);
  await image.decode();
  const picture = { dpi, image, pixels: image.naturalWidth * image.naturalHeight };
  keep(nameOf(paper, page), picture);
  return picture;
}

/** @param {string} name @param {Picture} picture */
function keep(name, picture) {
  const all = pictures.get(name) ?? new Map();
  if (all.has(picture.dpi)) return; // drawn ahead, and for a person who did not wait for that
  all.set(picture.dpi, picture);
  pictures.delete(name);
  pictures.set(name, all);
  pixels += picture.pixels;
  for (const [oldest, kept] of pictures) {
    if (pixels <= MOST_PIXELS || oldest === name) break;
    if ([...kept.values()].some(({ image }) => image.isConnected)) continue;
    for (const { image, pixels: freed } of kept.values()) {
      URL.revokeObjectURL(image.src);
      pixels -= freed;
    }
    pictures.delete(oldest);
  }
}

/** @type {{paper: string, page: number, dpi: number}[]} */
let waiting = [];
let running = 0;

/**
 * Loads pages that may be opened soon, in this order, in place of those that wait. Errors show once one is opened.
 * @param {{paper: string, page: number}[]} pages @param {(paper: Api.PaperDetails, page: number) => number} chooseDpi
 */
export async function loadAhead(pages, chooseDpi) {
  const listed = library.get().papers;
  const isThere = (/** @type {string} */ id) => !listed.size || listed.has(id); // an old answer cites removed papers
  const papers = [...new Set(pages.map(({ paper }) => paper))].filter(isThere);
  const loaded = await Promise.allSettled(papers.map(getPaper));
  const known = new Map(loaded.flatMap((one, at) => (one.status === "fulfilled" ? [[papers[at], one.value]] : [])));
  waiting = pages.flatMap(({ paper, page }) => {
    const found = known.get(paper);
    return found && page >= 1 && page <= found.pages ? [{ paper, page, dpi: chooseDpi(found, page) }] : [];
  });
  while (running < AHEAD && waiting.length) loadNext();
}

async function loadNext() {
  const next = waiting.shift();
  if (!next) return;
  running += 1;
  const { paper, page, dpi } = next;
  await Promise.allSettled([getText(paper, page, api.AHEAD), getPicture(paper, page, dpi, api.AHEAD)]);
  running -= 1;
  loadNext();
}
