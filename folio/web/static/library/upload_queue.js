// Sending files to the server, which queues them, and following its queue.

import * as api from "../base/api.js";
import { onEvent } from "../base/events.js";
import { showFailure } from "../base/failure.js";
import { health } from "../base/state.js";
import { t } from "../base/strings.js";

/**
 * @typedef {object} Outgoing A file that the server does not have yet.
 * @property {string} key
 * @property {File} file
 * @property {"waiting" | "sending" | "failed"} state
 * @property {number} sent the share that was sent, from 0 to 1
 * @property {number} cuts how often its connection was cut
 * @property {api.ApiError | null} error
 * @property {AbortController | null} controller
 */
/** @typedef {Api.UploadJson & {key: string}} Queued A file in the server's queue. */
/** @typedef {Outgoing | Queued} Item */

const AT_ONCE = 2; // files that are sent at the same time
const AGAIN_MS = 2000; // between tries while the server does not respond
const LOOK_MS = 500; // between two looks at the queue while something is being added
const MOST_CUTS = 3; // times that a file is sent to a server that responds and cuts the connection

/** @type {Outgoing[]} */
let outgoing = [];
/** @type {Api.UploadsJson} */
let queue = { uploads: [], active: false, notice: "" }; // as the server told it last
/** @type {Map<string, Api.UploadJson>} */
const accepted = new Map(); // uploads that the server has kept, by id, until it tells of them
/** @type {Map<string, Api.UploadJson>} */
const kept = new Map(); // uploads that were added, by id: they leave the server's queue before they leave the page
/** @type {Set<string>} */
const dismissed = new Set(); // ids of what is no longer shown
let onChange = () => {};
let onAdded = () => {};
/** @type {(before: string, after: string) => void} */
let onRenamed = () => {};
let following = false;
let changed = false; // whether the queue has changed since the server was asked last
let isAway = false; // whether the server does not respond

/** @param {Item} item */
const isPending = (item) => item.state === "waiting" || item.state === "sending";
/** @param {Item} item */
export const isDone = (item) => item.state === "added" || item.state === "failed";
/** Whether a person can retry it. @param {Item} item */
export const canRetry = (item) =>
  item.state === "failed" && (isQueued(item) || (item.error !== null && !api.isPermanent(item.error)));

/** @param {Item} item @returns {item is Queued} */
export const isQueued = (item) => "id" in item;

/** Whether files are being sent: they are lost if the page is closed. */
export const isSending = () => outgoing.some(isPending);

/** Whether files wait or are being added, here or on the server. */
export const isActive = () => queue.active || isSending();

/** Why the queue does not advance; "" if it does. */
export const getNotice = () => (isAway ? t("uploads.away") : queue.notice);

/** All items: those on the server, in its order, then those not sent yet. @returns {Item[]} */
export function listItems() {
  const uploads = new Map(kept);
  for (const upload of queue.uploads) uploads.set(upload.id, upload);
  const shown = [...uploads.values()].filter(({ id }) => !dismissed.has(id)).map((item) => ({ ...item, key: item.id }));
  return [...shown.sort((a, b) => (a.id < b.id ? -1 : 1)), ...outgoing];
}

// Sending

/** Sends files to the server, two at a time, which adds them one after the other. @param {File[]} files */
export function addFiles(files) {
  const most = health.get()?.max_file_mb;
  for (const file of files) {
    const key = `new-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
    /** @type {Outgoing} */
    const item = { key, file, state: "waiting", sent: 0, cuts: 0, error: null, controller: null };
    outgoing.push(item);
    if (most && file.size > most * 1e6) {
      fail(item, new api.ApiError(t("uploads.large", { most }), t("uploads.large.remedy"), 413));
    }
  }
  sendNext();
}

function sendNext() {
  while (outgoing.filter((item) => item.state === "sending").length < AT_ONCE) {
    const next = outgoing.find((item) => item.state === "waiting");
    if (!next) break;
    send(next);
  }
  onChange();
}

/** @param {Outgoing} item */
async function send(item) {
  item.state = "sending";
  item.controller = new AbortController();
  const onSent = (/** @type {number} */ share) => {
    item.sent = share;
    onChange();
  };
  try {
    const upload = await api.sendUpload(item.file, onSent, item.controller.signal);
    forget(item);
    onRenamed(item.key, upload.id);
    if (!queue.uploads.some(({ id }) => id === upload.id)) {
      accepted.set(upload.id, upload);
      queue = { ...queue, uploads: [...queue.uploads, upload], active: true };
    }
    follow();
  } catch (thrown) {
    if (api.isAbort(thrown)) forget(item);
    else fail(item, await explain(item.file, thrown));
  }
  sendNext();
}

/** Browsers report the same error if the server is away and if the file was changed or deleted after it was chosen. */
/** @param {File} file @param {unknown} thrown */
async function explain(file, thrown) {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    return new api.ApiError(t("uploads.unreadable"), t("uploads.unreadable.remedy"), 422);
  }
  return api.toApiError(thrown);
}

/** A file whose connection was cut is sent again: once the server responds; while it does, a few times. */
/** @param {Outgoing} item @param {api.ApiError} error */
function fail(item, error) {
  item.state = "failed";
  item.error = error;
  if (error.status !== 0) return;
  item.cuts += 1;
  follow();
  setTimeout(() => {
    if (isAway || !wasCut().includes(item)) return;
    if (item.cuts < MOST_CUTS) sendAgain(item);
    else giveUp(item);
  }, AGAIN_MS * item.cuts);
}

/** @param {Outgoing} item */
function giveUp(item) {
  item.cuts = 0;
  item.error = new api.ApiError(t("uploads.cut", { count: MOST_CUTS }), t("uploads.cut.remedy"), 502);
  onChange();
}

/** @param {Outgoing} item */
function forget(item) {
  outgoing = outgoing.filter((other) => other !== item);
}

/** @param {Outgoing} item */
function sendAgain(item) {
  item.state = "waiting";
  sendNext();
}

// Following

/** @param {Api.UploadsJson} state */
function update(state) {
  for (const upload of state.uploads) {
    accepted.delete(upload.id);
    if (upload.state !== "added") continue;
    if (!kept.has(upload.id)) onAdded();
    kept.set(upload.id, upload);
  }
  const late = [...accepted.values()]; // what was told is older than these
  queue = late.length ? { ...state, uploads: [...state.uploads, ...late], active: true } : state;
  onChange();
}

async function look() {
  const before = [...accepted.keys()];
  const state = await api.listUploads();
  isAway = false;
  for (const id of before) accepted.delete(id);
  update(state);
  return state;
}

/** Follows the queue until nothing waits. Never throws. */
export async function follow() {
  changed = true;
  if (following) return;
  following = true;
  while (changed) {
    try {
      changed = false;
      await followOnce();
    } catch (thrown) {
      if (api.toApiError(thrown).status !== 0 || !(isActive() || wasCut().length)) break;
      changed = isAway = true;
      for (const item of wasCut()) item.cuts = 0;
      onChange();
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
  following = false;
}

/** A hidden page sends no requests. */
async function followOnce() {
  if (document.hidden) return;
  const wasAway = isAway;
  const state = await look();
  if (wasAway) wasCut().forEach(sendAgain);
  if (!state.active) return;
  changed = true;
  await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
}

/** The files that did not arrive because the server did not respond. */
const wasCut = () => outgoing.filter((item) => item.error?.status === 0 && item.state === "failed");

// Actions of a person

/** Changes the queue on the server, and shows the result. @param {() => Promise<unknown>} request */
async function change(request) {
  try {
    await request();
    await look();
  } catch (thrown) {
    const error = api.toApiError(thrown);
    if (error.status !== 404) showFailure(error); // 404: it has left the queue meanwhile
  }
  follow();
}

/** @param {Item} item */
export function retry(item) {
  if (isQueued(item)) change(() => api.retryUpload(item.id));
  else sendAgain(item);
}

/** Retries all failed items that may succeed. */
export function retryFailed() {
  outgoing.filter(canRetry).forEach(sendAgain);
  if (queue.uploads.some(({ state }) => state === "failed")) change(api.retryUploads);
}

/** Cancels an item that waits or is being added; hides one that is done. @param {Item} item */
export function dismiss(item) {
  if (!isQueued(item)) {
    if (item.state === "sending") item.controller?.abort();
    else forget(item);
  } else if (item.state === "added") {
    kept.delete(item.id);
    dismissed.add(item.id);
  } else change(() => api.cancelUpload(item.id));
  onChange();
}

/** Cancels all items that wait or are being added. */
export function cancelAll() {
  outgoing.filter(isPending).forEach(dismiss);
  if (queue.active) change(api.cancelUploads);
}

/**
 * changed: called after each change. added: called when a paper was added. renamed: with an item's old and new key.
 * @param {{changed: () => void, added: () => void, renamed: (before: string, after: string) => void}} hooks
 */
export function setUpQueue(hooks) {
  onChange = hooks.changed;
  onAdded = hooks.added;
  onRenamed = hooks.renamed;
  onEvent("uploads", follow);
  onEvent("hello", follow);
  document.addEventListener("visibilitychange", follow);
  follow();
}
