// What the views share: the server's health, the papers, and the options of the next question.

import * as api from "./api.js";
import { parseOptions, splitFilter } from "./options.js";
import { inTurn } from "./pace.js";
import { place } from "./router.js";
import { keepUnchanged, Value } from "./value.js";

/**
 * @typedef {object} Library
 * @property {Map<string, Api.ListedPaperJson>} papers by id
 * @property {Api.FailureJson[]} failures
 * @property {Set<string>} collections the paths of all papers' collections and of those above them, in order
 * @property {Set<string>} tags in order
 * @property {Set<string>} categories in order
 */

/** @typedef {import("./options.js").Options} Options */
/** @typedef {Pick<Options, "papers" | "filters">} Scope */

/** @type {Value<Api.Health | null>} */
export const health = new Value(/** @type {Api.Health | null} */ (null));

/** @type {Library} */
const EMPTY = { papers: new Map(), failures: [], collections: new Set(), tags: new Set(), categories: new Set() };
/** @type {Value<Library>} */
export const library = new Value(EMPTY);

/** The projects, and the collections that are projects, by their ids; null until they are loaded. */
/** @type {Value<Map<string, Api.ProjectSummary> | null>} */
export const projects = new Value(/** @type {Map<string, Api.ProjectSummary> | null} */ (null));

/** Throws ApiError. */
export const loadProjects = inTurn(async () => {
  const { projects: listed } = await api.listProjects();
  projects.set(new Map(listed.map((project) => [project.id, project])));
});

/** The name of a project; what names it, if it is not known. @param {string} id */
export const getProjectName = (id) => projects.get()?.get(id)?.name ?? id;

/** Whether the papers were loaded at least once; else nobody knows how many there are. */
export const isLibraryLoaded = () => library.get() !== EMPTY;

export const EVERYTHING = Object.freeze({ papers: [], filters: {} });

/** @type {Value<Options>} */
export const options = new Value(parseOptions(place.get().view === "ask" ? place.get().query : {}));

/** Changes some options. @param {Partial<Options>} change */
export function setOptions(change) {
  options.set({ ...options.get(), ...change });
}

/**
 * @typedef {object} Selection Words of a paper that the next question is about.
 * @property {string} paper its id
 * @property {number} start offsets in the paper's text, in code points
 * @property {number} end
 * @property {number} page
 * @property {string} text
 */

/** @type {Value<Selection | null>} */
export const selection = new Value(/** @type {Selection | null} */ (null));

/** The name of a collection or a tag may have a ";". */
/** @param {string} name @param {string} typed */
function splitValues(name, typed) {
  const { collections, tags } = library.get();
  if ((name === "collection" && collections.has(typed)) || (name === "tag" && tags.has(typed))) return [typed];
  return splitFilter(name, typed);
}

/** A scope as the server expects it. @param {Scope} scope */
export function buildFilter({ papers, filters }) {
  const values = Object.entries(filters).map(([name, typed]) => [name, splitValues(name, typed)]);
  return { papers, ...Object.fromEntries(values) };
}

/** @returns {Scope} */
export const getScope = () => ({ papers: options.get().papers, filters: options.get().filters });

/** Throws ApiError. */
export const loadHealth = inTurn(async () => health.set(await api.getHealth()));

/** @param {string} one @param {string} other */
const compareNames = (one, other) => one.localeCompare(other);

/** The path of a collection, and of those above it: "Systems/Consensus", "Systems". @param {string} path */
const listPaths = (path) => path.split("/").map((_, at, steps) => steps.slice(0, at + 1).join("/"));

let tag = ""; // of the list of papers, by which the server knows whether it has changed
let loading = Promise.resolve(false);
/** @type {() => void} */
let resolveFirst;
/** Resolves after the first attempt to load the papers, even if it failed. @type {Promise<void>} */
export const papersLoaded = new Promise((resolve) => (resolveFirst = resolve));

/**
 * Loads the papers if they have changed since; returns whether. One request at a time. Throws ApiError.
 * @returns {Promise<boolean>}
 */
export function loadPapers() {
  loading = loading.catch(() => {}).then(loadChanged);
  return loading;
}

async function loadChanged() {
  try {
    const list = await api.listPapers(tag);
    if (list) takePapers(list);
    return list !== null;
  } finally {
    resolveFirst();
  }
}

/** @param {Api.PaperList & {tag: string}} list */
function takePapers({ papers, failures, tag: newTag }) {
  tag = newTag;
  const kept = keepUnchanged(library.get().papers.values(), papers);
  library.set({
    papers: new Map(kept.map((paper) => [paper.id, paper])),
    failures,
    collections: new Set(papers.flatMap((paper) => paper.collections.flatMap(listPaths)).sort(compareNames)),
    tags: new Set(papers.flatMap((paper) => paper.tags).sort(compareNames)),
    categories: new Set(papers.flatMap((paper) => paper.categories).sort(compareNames)),
  });
}

/**
 * The title of a paper, or of the one that a citation or a hit is from, as it is now; its file name if it has none.
 * @param {{paper?: string, id?: string, title: string, file: string}} paper
 */
export function getTitle(paper) {
  const { title, file } = library.get().papers.get(paper.paper ?? paper.id ?? "") ?? paper;
  return title || file;
}
