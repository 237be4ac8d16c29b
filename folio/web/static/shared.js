// State shared by the modules: the server's health, the papers, the options of a question.

import * as api from "./api.js";
import { showToast } from "./dom.js";

export const shared = {
  health: null,
  papersTag: "", // of the list of papers, by which the server knows whether it has changed
  papers: new Map(), // by id
  failures: [],
  collection: new Set(), // the paths of all papers' collections and of those above them
  tag: new Set(),
};

export const options = {
  papers: new Set(), // ids; empty: all papers
  filters: {}, // year, author, venue, section, collection, tag, cited_by as typed; a missing one fits everything
  topK: null, // null: the server's setting
  reranker: true,
  style: "plain",
  model: null, // null: the server's setting
  deep: false, // search in rounds
};

/** Several values are separated by ";", years by "," too; the name of a collection or a tag may have a ";". */
function splitValues(name, typed) {
  if (shared[name]?.has(typed)) return [typed];
  const parts = typed.split(name === "year" ? /[;,]/ : ";");
  return parts.map((part) => part.trim()).filter(Boolean);
}

/** The options that say what is searched, as the server expects them. */
export function buildFilter() {
  const values = Object.entries(options.filters).map(([name, typed]) => [name, splitValues(name, typed)]);
  return { papers: [...options.papers], ...Object.fromEntries(values) };
}

/** What is chosen of the options that say what is searched, to be set again. */
export const getFilter = () => ({ papers: [...options.papers], filters: { ...options.filters } });

/** Sets what is searched: each conversation has its own choice. */
export function setFilter({ papers, filters }) {
  options.papers = new Set(papers);
  options.filters = { ...filters };
  notify("options");
}

export const NO_FILTER = { papers: [], filters: {} };

const events = new EventTarget();

/** Announces a change of "health", "papers", "options", or of what papers are "described" as; or a question "asked". */
export const notify = (what) => events.dispatchEvent(new Event(what));
export const onChange = (what, listener) => events.addEventListener(what, listener);

/** Raises ApiError. */
export async function loadHealth() {
  shared.health = await api.getHealth();
  notify("health");
}

const compareNames = (a, b) => a.localeCompare(b);

/** The path of a collection, and of those above it: "Systems/Consensus", "Systems". */
const listPaths = (path) => path.split("/").map((_, place, steps) => steps.slice(0, place + 1).join("/"));

/** Whether a paper is in a collection, or in one below it. */
export const isIn = (paper, path) => paper.collections.some((each) => each === path || each.startsWith(`${path}/`));

let resolvePapersLoaded;
/** Resolves after the first attempt to load the papers, even if it failed. */
export const papersLoaded = new Promise((resolve) => (resolvePapersLoaded = resolve));

/** Returns whether they were loaded: with ifChanged, only if they are others than before. Raises ApiError. */
export async function loadPapers({ ifChanged = false } = {}) {
  try {
    const found = await api.listPapers(ifChanged ? shared.papersTag : "");
    if (found) takePapers(found);
    return found !== null;
  } finally {
    resolvePapersLoaded();
  }
}

function takePapers({ papers, failures, tag }) {
  const before = shared.papersTag && JSON.stringify([...shared.papers.values()]);
  shared.papersTag = tag;
  shared.papers = new Map(papers.map((paper) => [paper.id, paper]));
  shared.failures = failures;
  shared.collection = new Set(papers.flatMap((paper) => paper.collections.flatMap(listPaths)).sort(compareNames));
  shared.tag = new Set(papers.flatMap((paper) => paper.tags).sort(compareNames));
  const gone = [...options.papers].filter((id) => !shared.papers.has(id));
  for (const id of gone) options.papers.delete(id);
  if (gone.length && !options.papers.size) {
    showToast("The paper you were asking about was removed. Questions now go to all papers.");
  }
  notify("papers");
  notify("options");
  if (before && before !== JSON.stringify(papers)) notify("described");
}

/** The title of a paper, or of the one that a citation or a hit is from, as it is now; its file name if it has none. */
export function getTitle(paper) {
  const { title, file } = shared.papers.get(paper.paper ?? paper.id) ?? paper;
  return title || file;
}
