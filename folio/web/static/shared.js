// What several parts of the page know: the state of the server, the papers, the options of a question.

import * as api from "./api.js";
import { toast } from "./dom.js";

export const shared = {
  health: null,
  papers: new Map(), // by id
  failures: [],
};

export const options = {
  papers: new Set(), // ids; none: all papers are asked
  topK: null, // null: as the server is set
  reranker: true,
  style: "plain",
  model: null, // null: as the server is set
};

const page = new EventTarget();

/** Something above has changed: "health", "papers" or "options"; or a question was "asked". */
export const changed = (what) => page.dispatchEvent(new Event(what));
export const onChange = (what, react) => page.addEventListener(what, react);

/** Raises ApiError. */
export async function loadHealth() {
  shared.health = await api.health();
  changed("health");
}

let tellPapersKnown;
/** Resolves when the papers have been asked for once, whether they came or not. */
export const papersKnown = new Promise((resolve) => (tellPapersKnown = resolve));

/** Raises ApiError. */
export async function loadPapers() {
  const { papers, failures } = await api.papers().finally(tellPapersKnown);
  shared.papers = new Map(papers.map((paper) => [paper.id, paper]));
  shared.failures = failures;
  const gone = [...options.papers].filter((id) => !shared.papers.has(id));
  for (const id of gone) options.papers.delete(id);
  if (gone.length && !options.papers.size) toast("The paper that was asked alone is gone: questions go to all papers.");
  changed("papers");
  changed("options");
}

/** What a paper is called: its title, else its file. */
export const nameOf = (paper) => paper.title || paper.file;
