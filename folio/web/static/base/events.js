// What changes on the server, as it tells: by this page, another tab, or a terminal.

/**
 * @typedef {object} Events
 * @property {Api.HelloEvent} hello the connection is new: what was shown may be old
 * @property {Api.PapersEvent} papers
 * @property {Api.UploadsEvent} uploads
 * @property {object} failures
 * @property {object} notes
 * @property {Api.ConversationsEvent} conversations
 * @property {Api.ProjectsEvent} projects
 * @property {Api.TasksJson} tasks long work of the server
 * @property {Api.TablesEvent} tables
 * @property {object} away the connection was lost; `hello` follows once it is there again
 */

/** @typedef {keyof Events} Kind */

/** @type {Kind[]} */
const KINDS = ["hello", "papers", "uploads", "failures", "notes", "conversations", "projects", "tasks", "tables"];
const AGAIN_MS = 5000; // after which a connection that the server has refused is tried again
const NAME = `folio-events ${location.pathname}`; // of the lock and of the channel, in all tabs of this server

/** @type {Map<string, Set<(data: any) => void>>} */
const listeners = new Map([...KINDS, "away"].map((kind) => [kind, new Set()]));

/**
 * Calls the listener with each event of a kind. Returns a function that ends this.
 * @template {Kind} K
 * @param {K} kind @param {(data: Events[K]) => void} listener
 */
export function onEvent(kind, listener) {
  listeners.get(kind)?.add(listener);
  return () => void listeners.get(kind)?.delete(listener);
}

/** @param {string} kind @param {object} data */
function tellListeners(kind, data) {
  for (const listener of listeners.get(kind) ?? []) listener(data);
}

/** Loads everything again. */
export const startAgain = () => tellListeners("hello", {});

/**
 * Follows what the server tells, for as long as the page is open. Browsers allow six connections to a server, so one
 * tab holds a connection for all tabs. Without locks, which browsers have on this computer and over HTTPS, each does.
 */
export function followEvents() {
  if (!("locks" in navigator && "BroadcastChannel" in window)) {
    connect(tellListeners);
    return;
  }
  const channel = new BroadcastChannel(NAME);
  channel.onmessage = ({ data: { kind, data } }) => tellListeners(kind, data);
  lead(channel);
  // A browser may suspend a hidden tab, and its connection with it. The tab that a person sees takes over.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !isLeading) lead(channel, { steal: true });
  });
}

let isLeading = false;
let queued = new AbortController(); // ends the request of a tab that waits for the lock

/** Connects once no other tab does, or at once if this tab takes over. */
/** @param {BroadcastChannel} channel @param {LockOptions} [how] */
async function lead(channel, how) {
  queued.abort();
  queued = new AbortController();
  const { signal } = queued;
  let disconnect = () => {};
  const holdConnection = () => {
    isLeading = true;
    disconnect = connect((kind, data) => {
      channel.postMessage({ kind, data });
      tellListeners(kind, data);
    });
    return new Promise(() => {}); // keeps the lock until the tab is closed
  };
  try {
    await navigator.locks.request(NAME, how ?? { signal }, holdConnection);
  } catch {
    if (signal.aborted) return; // this tab has taken over instead
    isLeading = false;
    disconnect(); // another tab took over
    lead(channel);
  }
}

/** Connects to the server. Returns a function that ends the connection. @param {typeof tellListeners} onEach */
function connect(onEach) {
  const source = new EventSource("events");
  /** @type {number | undefined} */
  let timer;
  let disconnect = () => {
    clearTimeout(timer);
    source.close();
  };
  for (const kind of KINDS) source.addEventListener(kind, (event) => onEach(kind, JSON.parse(event.data)));
  source.onerror = () => {
    onEach("away", {});
    // The browser connects again by itself unless the server has refused.
    if (source.readyState !== EventSource.CLOSED) return;
    timer = setTimeout(() => {
      disconnect = connect(onEach);
    }, AGAIN_MS);
  };
  return () => disconnect();
}
