// Requests to the server.

import { t } from "./strings.js";

/** An error and its remedy, one sentence each. `status` is 0 if the server did not respond. */
export class ApiError extends Error {
  /** @param {string} error @param {string} remedy @param {number} [status] @param {boolean} [modelFailed] */
  constructor(error, remedy, status = 0, modelFailed = false) {
    super(error);
    this.error = error;
    this.remedy = remedy;
    this.status = status;
    this.modelFailed = modelFailed; // the built-in answers need no model
  }
}

/** @param {Api.ErrorBody & {model_failed?: boolean}} body */
export const errorOf = ({ error, remedy, model_failed }) => new ApiError(error, remedy, 0, model_failed);

const connectionError = () => new ApiError(t("error.connection"), t("error.connection.remedy"));

/** Turns anything thrown into an ApiError that can be shown. @param {unknown} thrown */
export function toApiError(thrown) {
  if (thrown instanceof ApiError) return thrown;
  console.error(thrown);
  return new ApiError(t("error.page"), t("error.page.remedy"));
}

/** Whether a retry would fail in the same way. @param {ApiError} error */
export const isPermanent = (error) => error.status >= 400 && error.status < 500 && error.status !== 409;

/** @param {any} thrown */
export const isAbort = (thrown) => thrown?.name === "AbortError";

/** Throws ApiError. path: from the page's own address, which may have a path. @param {string} path @param {RequestInit} [options] */
async function request(path, options) {
  let response;
  try {
    response = await fetch(`.${path}`, options);
  } catch (thrown) {
    throw isAbort(thrown) ? thrown : connectionError();
  }
  if (response.ok || response.status === 304) return response;
  throw refusal(response.status, await response.json().catch(() => ({})));
}

/** @param {number} status @param {Partial<Api.ErrorBody & {field: string}>} body field: what was entered there is wrong */
function refusal(status, { error = t("error.status", { status }), remedy = t("error.status.remedy"), field }) {
  if (!field) return new ApiError(error, remedy, status);
  const problem = error.slice(`${field}: `.length); // the rest is for programs
  return new ApiError(t("error.input", { problem }), t("error.input.remedy"), status);
}

/** @param {string} method @param {unknown} body @param {AbortSignal} [signal] @returns {RequestInit} */
const sendJson = (method, body, signal) => ({
  method,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

/** @param {unknown} body @param {AbortSignal} [signal] */
const postJson = (body, signal) => sendJson("POST", body, signal);

/** @param {string} path @param {RequestInit} [options] @returns {Promise<any>} */
const getJson = async (path, options) => (await request(path, options)).json();

/** @typedef {{event: string, data: any}} StreamEvent */
/** @typedef {AsyncGenerator<StreamEvent, void, void>} Events */

/**
 * Yields the events of a stream. Throws on "error", and if the stream ends before "done" or "stopped".
 * @param {string} path @param {RequestInit} options
 * @returns {Events}
 */
async function* streamEvents(path, options) {
  const { body } = await request(path, options);
  if (!body) throw connectionError();
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((thrown) => {
        throw isAbort(thrown) ? thrown : connectionError();
      });
      if (done) throw connectionError();
      const blocks = (text + value).split(/\r\n\r\n|\n\n/);
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const received = parseEvent(block);
        if (!received) continue;
        if (received.event === "error") throw errorOf(received.data);
        yield received;
        if (["done", "stopped"].includes(received.event)) return;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {string} block @returns {StreamEvent | null} */
export function parseEvent(block) {
  let event = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === "event") event = value;
    else if (field === "data") data.push(value); // other lines are comments that keep the connection open
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}

/** @returns {Promise<Api.Health>} */
export const getHealth = () => getJson("/health");

/** @returns {Promise<Api.ModelServerList>} */
export const findModelServers = () => getJson("/model-servers");

/** @param {Api.SearchRequest} query @param {AbortSignal} signal @returns {Promise<Api.SearchReply>} */
export const search = (query, signal) => getJson("/search", postJson(query, signal));

/** @param {Api.ChatRequest} message @param {AbortSignal} signal */
export const ask = (message, signal) => streamEvents("/chat/stream", postJson(message, signal));

/** The events of an answer that is being made, from the beginning. */
/** @param {string} id @param {number} turn @param {AbortSignal} signal */
export const followAnswer = (id, turn, signal) => streamEvents(`/conversations/${id}/turns/${turn}/events`, { signal });

/**
 * Asks a question again that has no answer. model: null for its own.
 * @param {string} id @param {number} turn @param {string | null} model @param {AbortSignal} signal
 */
export const askAgain = (id, turn, model, signal) =>
  streamEvents(`/conversations/${id}/turns/${turn}/again`, postJson({ model }, signal));

/** @param {string} id @param {number} turn */
export const stopAnswer = (id, turn) => request(`/conversations/${id}/turns/${turn}/stop`, { method: "POST" });

/** @param {Api.OpenedRequest} opened */
export const recordOpened = (opened) => request("/opened", { ...postJson(opened), keepalive: true });

/** @returns {Promise<Api.OwnQuestionsJson>} */
export const getOwnQuestions = () => getJson("/own-questions", { cache: "no-store" });

/** @returns {Promise<Api.OwnQuestionsJson>} */
export const measureOwnQuestions = () => getJson("/own-questions/measure", postJson({}));
export const stopMeasuring = () => request("/own-questions/stop", { method: "POST" });

/** @param {Api.FeedbackRequest} feedback */
export const sendFeedback = (feedback) => request("/feedback", postJson(feedback));

/** All, or those that have all words of a query. @param {string} [query] @returns {Promise<Api.ConversationList>} */
export const listConversations = (query = "") =>
  getJson(`/conversations${query ? `?${new URLSearchParams({ query })}` : ""}`);

/** @param {number | null} turn */
const formatTurn = (turn) => (turn === null ? "" : `?turn=${turn}`);

/** Its path through a turn; null: to the latest one. */
/** @param {string} id @param {number | null} [turn] @returns {Promise<Api.Conversation>} */
export const getConversation = (id, turn = null) => getJson(`/conversations/${id}${formatTurn(turn)}`);

/** A new key, by which a change can be undone: see undo.js. */
export const makeKey = () =>
  [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} path @param {string} key */
const undoable = (path, key) => (key ? `${path}?undo=${key}` : path);

/** Puts back what was changed and deleted with a key. @param {string} key */
export const undo = (key) => request(`/undo/${key}`, { method: "POST" });

/**
 * @param {string} id @param {Partial<Api.ConversationChanges>} changes @param {string} [undo]
 * @returns {Promise<Api.ConversationSummary>}
 */
export const changeConversation = (id, changes, undo = "") =>
  getJson(undoable(`/conversations/${id}`, undo), sendJson("PATCH", changes));

/** @returns {Promise<Api.InstructionList>} */
export const listInstructions = () => getJson("/instructions", { cache: "no-store" });

/** @param {string} project its id @param {string | null} instruction its id */
export const chooseInstruction = (project, instruction) =>
  request(`/instructions/of-project/${encodeURIComponent(project)}`, sendJson("PUT", { instruction }));

/** @param {Api.NewInstruction} written @returns {Promise<Api.InstructionJson>} */
export const addInstruction = (written) => getJson("/instructions", postJson(written));

/** @param {string} id @param {Api.InstructionEdits} edits @param {string} undo @returns {Promise<Api.InstructionJson>} */
export const changeInstruction = (id, edits, undo) =>
  getJson(undoable(`/instructions/${id}`, undo), sendJson("PATCH", edits));

/** @param {string} id @param {string} undo */
export const deleteInstruction = (id, undo) => request(undoable(`/instructions/${id}`, undo), { method: "DELETE" });

/** @param {string} id @param {number} turn @returns {Promise<Api.SuggestedQuestions>} */
export const listFollowUps = (id, turn) => getJson(`/conversations/${id}/turns/${turn}/followups`);

/** @returns {Promise<Api.SuggestedQuestions>} */
export const listExamples = () => getJson("/examples");

/** @param {string} id @param {string} undo */
export const deleteConversation = (id, undo) => request(undoable(`/conversations/${id}`, undo), { method: "DELETE" });

/** @param {string} id @param {number | null} turn of the path that is exported */
export const markdownUrl = (id, turn) => `conversations/${id}/markdown${formatTurn(turn)}`;

/** @param {string} id @param {number} turn */
export const getZoteroNote = async (id, turn) =>
  (await request(`/conversations/${id}/zotero-note?turn=${turn}`)).text();

/**
 * All papers, and their tag; null if that is still this tag.
 * @param {string} [tag]
 * @returns {Promise<(Api.PaperList & {tag: string}) | null>}
 */
export async function listPapers(tag = "") {
  const response = await request("/papers", { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
  return response.status === 304 ? null : { ...(await response.json()), tag: response.headers.get("ETag") };
}

/** @param {string} query @param {AbortSignal} signal @returns {Promise<Api.PaperList>} */
export const findPapers = (query, signal) => getJson(`/papers?${new URLSearchParams({ query })}`, { signal });

/** @param {string} id @returns {Promise<Api.PaperDetails>} */
export const getPaper = (id) => getJson(`/papers/${id}`);

/** @param {string} id @param {Api.PaperEdits} edits @param {string} undo @returns {Promise<Api.PaperDetails>} */
export const editPaper = (id, edits, undo) => getJson(undoable(`/papers/${id}`, undo), sendJson("PATCH", edits));

/** @param {string} id @param {AbortSignal} [signal] @returns {Promise<Api.PaperAbout>} */
export const getAbout = (id, signal) => getJson(`/papers/${id}/about`, { signal });

/**
 * The same changes of several papers.
 * @param {Api.ManyEdits} edits @param {string} undo @returns {Promise<Api.ChangedPapers>}
 */
export const editPapers = (edits, undo) => getJson(undoable("/papers/edits", undo), postJson(edits));

/** @param {string} id @param {number} page */
export const putReading = (id, page) => request(`/papers/${id}/reading`, sendJson("PUT", { page }));

/** @returns {Promise<Api.RemovedPapers>} */
export const listRemoved = () => getJson("/removed");

/** @returns {Promise<Api.EmptiedJson>} */
export const emptyRemoved = () => getJson("/removed/empty", postJson({}));

/** @param {string[]} papers @returns {Promise<Api.RestoredPapers>} */
export const restorePapers = (papers) => getJson("/removed/restore", postJson({ papers }));

/** The first page as a picture. @param {string} id */
export const pictureUrl = (id, page = 1) => `papers/${id}/pages/${page}.png`;

/** @param {string[]} papers @param {string} undo @returns {Promise<Api.RemovedFiles>} */
export const removePapers = (papers, undo) => getJson(undoable("/removed", undo), postJson({ papers }));

/**
 * A bibliography of these papers: "papers.bib" or "papers.csl.json".
 * @param {string} path @param {string[]} papers
 */
export const exportPapers = async (path, papers) => (await request(`/${path}`, postJson({ papers }))).blob();

/** @param {string} id @param {number} page */
export const pdfUrl = (id, page) => `pdf/${id}#page=${page}`;

/**
 * Sends a PDF to the server's queue; resolves to its entry there once the server has kept it. onSent: called with the
 * share that was sent, from 0 to 1. fetch() does not tell that.
 * @param {File} file @param {(share: number) => void} onSent @param {AbortSignal} signal
 * @returns {Promise<Api.UploadJson>}
 */
export function sendUpload(file, onSent, signal) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", `uploads?${new URLSearchParams({ name: file.name })}`);
    sending.setRequestHeader("Content-Type", "application/pdf");
    sending.responseType = "json";
    sending.upload.onprogress = ({ loaded, total }) => onSent(total ? loaded / total : 0);
    sending.onload = () => {
      if (sending.status < 300 && sending.response) resolve(sending.response);
      else reject(refusal(sending.status, sending.response ?? {}));
    };
    sending.onerror = () => reject(connectionError());
    sending.onabort = () => reject(new DOMException("The upload was cancelled.", "AbortError"));
    signal.addEventListener("abort", () => sending.abort());
    sending.send(file);
  });
}

/** @returns {Promise<Api.UploadsJson>} */
export const listUploads = () => getJson("/uploads");

/** @param {string} id */
export const cancelUpload = (id) => request(`/uploads/${id}`, { method: "DELETE" });
export const cancelUploads = () => request("/uploads", { method: "DELETE" });

/** @param {string} id */
export const retryUpload = (id) => request(`/uploads/${id}/retry`, { method: "POST" });
export const retryUploads = () => request("/uploads/retry", { method: "POST" });

/**
 * Works at services on the internet, where the server may ask them.
 * @param {Record<string, string | number | boolean | null>} query @param {AbortSignal} signal
 * @returns {Promise<Api.DiscoverReply>}
 */
export function discover(query, signal) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== false);
  return getJson(`/discover?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`, { signal });
}

/** @param {Api.MissingRequest} request @param {AbortSignal} signal @returns {Promise<Api.ProposedSearches>} */
export const proposeSearches = (request, signal) => getJson("/searches", postJson(request, signal));

/** @param {Api.SearchesRequest} request @param {AbortSignal} signal @returns {Promise<Api.DiscoverReply>} */
export const discoverFor = (request, signal) => getJson("/discover", postJson(request, signal));

/** @param {string[]} ids @param {AbortSignal} signal */
export const fetchPapers = (ids, signal) => streamEvents("/papers/fetch", postJson({ ids }, signal));

/** @returns {Promise<Api.LibraryCitations>} */
export const listCitations = () => getJson("/citations");

/** @param {string} id @param {AbortSignal} signal @returns {Promise<Api.PaperCitations>} */
export const getCitations = (id, signal) => getJson(`/papers/${id}/citations`, { signal });

/** @param {string} id @param {AbortSignal} signal @returns {Promise<Api.PaperCitations>} */
export const lookUpCitations = (id, signal) => getJson(`/papers/${id}/citations`, { method: "POST", signal });

/** For what may be needed soon: the server first does what a person waits for. @type {RequestInit} */
export const AHEAD = { headers: { Priority: "u=6" } };

/** @param {string} id @param {number} page @param {RequestInit} [how] @returns {Promise<Api.PageText>} */
export const getPageText = (id, page, how) => getJson(`/papers/${id}/pages/${page}/text`, how);

/** A page as a picture. @param {string} id @param {number} page @param {number} dpi @param {RequestInit} [how] */
export const getPagePicture = async (id, page, dpi, how) =>
  (await request(`/papers/${id}/pages/${page}.png?${new URLSearchParams({ dpi: String(dpi) })}`, how)).blob();

/** @param {string} id @param {string} words @param {AbortSignal} signal @returns {Promise<Api.PlacesJson>} */
export const findInPaper = (id, words, signal) =>
  getJson(`/papers/${id}/find?${new URLSearchParams({ words })}`, { signal });

/** Begins a review. @param {Partial<Api.ReviewRequest>} wanted @returns {Promise<Api.ReviewJson>} */
export const makeReview = (wanted) => getJson("/reviews", postJson(wanted));

/** @param {string} id @param {AbortSignal} signal @returns {Promise<Api.ReviewJson>} */
export const getReview = (id, signal) => getJson(`/reviews/${id}`, { signal, cache: "no-store" });

/** @param {string} id */
export const stopReview = (id) => request(`/reviews/${id}/stop`, { method: "POST" });

/** @param {string} id @param {"md" | "docx"} format */
export const reviewUrl = (id, format) => `reviews/${id}/export?format=${format}`;

/** @returns {Promise<Api.ProjectList>} */
export const listProjects = () => getJson("/projects", { cache: "no-store" });

/** @param {string} id @returns {Promise<Api.ProjectDetails>} */
export const getProject = (id) => getJson(`/projects/${id}`, { cache: "no-store" });

/** @param {Partial<Api.NewProject>} project @returns {Promise<Api.ProjectDetails>} */
export const addProject = (project) => getJson("/projects", postJson(project));

/** @param {string} id @param {Partial<Api.ProjectChanges>} changes @param {string} undo @returns {Promise<Api.ProjectDetails>} */
export const changeProject = (id, changes, undo) =>
  getJson(undoable(`/projects/${id}`, undo), sendJson("PATCH", changes));

/**
 * @param {string} id @param {{add?: Partial<Api.ProjectParts>, remove?: Partial<Api.ProjectParts>}} changes
 * @param {string} undo @returns {Promise<Api.ProjectDetails>}
 */
export const changeParts = (id, changes, undo) => getJson(undoable(`/projects/${id}/parts`, undo), postJson(changes));

/** @param {string} id @param {string} undo */
export const deleteProject = (id, undo) => request(undoable(`/projects/${id}`, undo), { method: "DELETE" });

/** What a question with these filters is asked of, in words. @param {object} filter @returns {Promise<Api.ScopeLine>} */
export const describeScope = (filter) => getJson("/scope", postJson(filter));

/** The notes of a project. @param {string} project @returns {Promise<Api.NoteList>} */
export const listProjectNotes = (project) =>
  getJson(`/notes?${new URLSearchParams({ project })}`, { cache: "no-store" });

/** The notes on a paper. @param {string} paper @returns {Promise<Api.NoteList>} */
export const listNotes = (paper) => getJson(`/notes?${new URLSearchParams({ paper })}`, { cache: "no-store" });

/** The notes on all papers. @returns {Promise<Api.NoteList>} */
export const listAllNotes = () => getJson("/notes", { cache: "no-store" });

/**
 * These notes, in this order, as a file.
 * @param {"md" | "docx" | "bib"} kind @param {string[]} ids
 */
export const exportNotes = async (kind, ids) => (await request(`/notes.${kind}`, postJson({ ids }))).blob();

/** @param {Partial<Api.NewNote>} note @returns {Promise<Api.NoteJson>} */
export const addNote = (note) => getJson("/notes", postJson(note));

/** @param {string} id @param {Api.NoteEdits} edits @param {string} undo @returns {Promise<Api.NoteJson>} */
export const editNote = (id, edits, undo) => getJson(undoable(`/notes/${id}`, undo), sendJson("PATCH", edits));

/** Deletes a note, unless another tab or a terminal was faster. @param {string} id @param {string} undo */
export async function deleteNote(id, undo) {
  try {
    await request(undoable(`/notes/${id}`, undo), { method: "DELETE", keepalive: true });
  } catch (thrown) {
    if (!(thrown instanceof ApiError && thrown.status === 404)) throw thrown;
  }
}

// Settings

/** @returns {Promise<Api.SettingsJson>} */
export const getSettings = () => getJson("/settings", { cache: "no-store" });

/** @param {Record<string, string | null>} changes @returns {Promise<Api.ChangedSettings>} */
export const changeSettings = (changes) => getJson("/settings", sendJson("PATCH", { changes }));

/** @returns {Promise<Api.KnownModels>} */
export const listModels = () => getJson("/settings/models", { cache: "no-store" });

/** @returns {Promise<Api.TasksJson>} */
export const listTasks = () => getJson("/tasks", { cache: "no-store" });

/** @param {"read" | "repair" | "zotero"} kind @returns {Promise<Api.TaskJson>} */
export const startTask = (kind) => getJson(`/tasks/${kind}`, { method: "POST" });

/** @param {Api.RebuildRequest} request @returns {Promise<Api.TaskJson>} */
export const startRebuild = (request) => getJson("/tasks/rebuild", postJson(request));

/** @param {string} model @returns {Promise<Api.TaskJson>} */
export const startPull = (model) => getJson("/tasks/pull", postJson({ model }));

/** @param {string} id */
export const endTask = (id) => request(`/tasks/${id}`, { method: "DELETE" });

/** @param {string} path "" for the home folder @returns {Promise<Api.FolderListing>} */
export const listFolders = (path) => getJson(`/settings/folders?${new URLSearchParams({ path })}`);

/** @returns {Promise<Api.ZoteroJson>} */
export const getZotero = () => getJson("/settings/zotero", { cache: "no-store" });

/** @returns {Promise<Api.StorageJson>} */
export const getStorage = () => getJson("/settings/storage", { cache: "no-store" });

/** @param {string} path @param {File} file */
const sendFile = (path, file) => {
  const body = new FormData();
  body.append("file", file);
  return getJson(path, { method: "POST", body });
};

/** What an import of a bibliography changes; with take, it is imported. */
/** @param {File} file @param {{take: boolean}} how @returns {Promise<Api.BibliographyJson>} */
export const sendBibliography = (file, { take }) => sendFile(take ? "/bibliography" : "/bibliography/preview", file);

/** @param {File} file @returns {Promise<Api.Restored>} */
export const restoreBackup = (file) => sendFile("/backup", file);

/** @param {string} day @returns {Promise<Api.Restored>} */
export const restoreCopy = (day) => getJson(`/backup/${day}`, { method: "POST" });

/** @param {number} most @returns {Promise<Api.LogJson>} */
export const getLog = (most) => getJson(`/log?${new URLSearchParams({ most: String(most) })}`, { cache: "no-store" });

/** @returns {Promise<Api.DeletedLog>} */
export const deleteLog = () => getJson("/log", { method: "DELETE" });

/** All tables, or those of a project. @param {string} [project] @returns {Promise<Api.TableList>} */
export const listTables = (project) =>
  getJson(project ? `/tables?${new URLSearchParams({ project })}` : "/tables", { cache: "no-store" });

/** @param {string} id @returns {Promise<Api.TableJson>} */
export const getTable = (id) => getJson(`/tables/${id}`, { cache: "no-store" });

/** @param {Partial<Api.NewTable>} table @returns {Promise<Api.TableJson>} */
export const addTable = (table) => getJson("/tables", postJson(table));

/** @param {string} id @param {Partial<Api.TableChanges>} changes @param {string} undo @returns {Promise<Api.TableJson>} */
export const changeTable = (id, changes, undo) => getJson(undoable(`/tables/${id}`, undo), sendJson("PATCH", changes));

/** @param {string} id @param {string} undo */
export const deleteTable = (id, undo) => request(undoable(`/tables/${id}`, undo), { method: "DELETE" });

/** @param {string} id @param {Api.NewColumn} column @returns {Promise<Api.TableJson>} */
export const addColumn = (id, column) => getJson(`/tables/${id}/columns`, postJson(column));

/**
 * @param {string} id @param {string} column @param {Partial<Api.NewColumn>} changes @param {string} undo
 * @returns {Promise<Api.TableJson>}
 */
export const changeColumn = (id, column, changes, undo) =>
  getJson(undoable(`/tables/${id}/columns/${column}`, undo), sendJson("PATCH", changes));

/** @param {string} id @param {string} column @param {string} undo @returns {Promise<Api.TableJson>} */
export const removeColumn = (id, column, undo) =>
  getJson(undoable(`/tables/${id}/columns/${column}`, undo), { method: "DELETE" });

/** @param {string} id @param {string[]} papers @returns {Promise<Api.TableJson>} */
export const addRows = (id, papers) => getJson(`/tables/${id}/rows`, postJson({ papers }));

/** @param {string} id @param {string} paper @param {string} undo @returns {Promise<Api.TableJson>} */
export const removeRow = (id, paper, undo) =>
  getJson(undoable(`/tables/${id}/rows/${paper}`, undo), { method: "DELETE" });

/** @param {string} id @param {("failed" | "not_found" | "stale")[]} again @returns {Promise<Api.TableSummaryJson>} */
export const fillTable = (id, again) => getJson(`/tables/${id}/fill`, postJson({ again }));

/** @param {string} id */
export const stopFilling = (id) => request(`/tables/${id}/stop`, { method: "POST" });

/** @param {string} id @param {number} since @returns {Promise<Api.ChangedCells>} */
export const getChangedCells = (id, since) => getJson(`/tables/${id}/cells?since=${since}`, { cache: "no-store" });

/** @param {string} id @param {Api.CellJson} cell */
const cellPath = (id, { column, paper }) => `/tables/${id}/cells/${column}/${paper}`;

/** @param {string} id @param {Api.CellJson} cell */
export const askCell = (id, cell) => request(`${cellPath(id, cell)}/ask`, { method: "POST" });

/** @param {string} id @param {Api.CellJson} cell @param {string} text @param {string | null} before @param {string} undo */
export const editCell = (id, cell, text, before, undo) =>
  /** @type {Promise<Api.CellJson>} */ (
    getJson(undoable(`${cellPath(id, cell)}/edit`, undo), sendJson("PUT", { text, before }))
  );

/** @param {string} id @param {Api.CellJson} cell @param {string} undo @returns {Promise<Api.CellJson>} */
export const dropEdit = (id, cell, undo) => getJson(undoable(`${cellPath(id, cell)}/edit`, undo), { method: "DELETE" });

/** Columns that would suit a table. @param {string} id @returns {Promise<Api.SuggestedColumns>} */
export const suggestColumns = (id) => getJson(`/tables/${id}/suggested-columns`);

/**
 * Columns that would suit a new table of some papers.
 * @param {Record<string, string[]>} filter @param {AbortSignal} signal @returns {Promise<Api.SuggestedColumns>}
 */
export function suggestFirstColumns(filter, signal) {
  const given = Object.entries(filter).flatMap(([name, values]) => values.map((value) => [name, value]));
  return getJson(`/tables/suggested-columns?${new URLSearchParams(given)}`, { signal });
}

/** @param {string} id @param {string} format */
export const tableUrl = (id, format) => `tables/${id}/export?format=${format}`;
