// What changes on the server, as it tells: by this page, another tab, or a terminal.

/**
 * @typedef {object} Events
 * @property {Api.HelloEvent} hello the connection is new: what was shown may be old
 * @property {Api.PapersEvent} papers
 * @property {Api.UploadsEvent} uploads
 * @property {object} failures
 * @property {object} notes
 * @property {Api.ConversationsEvent} conversations
 */

/** @typedef {keyof Events} Kind */

/** @type {Kind[]} */
const KINDS = ["hello", "papers", "uploads", "failures", "notes", "conversations"];
const AGAIN_MS = 5000; // after which a connection that the server has refused is tried again

/** @type {Map<string, Set<(data: any) => void>>} */
const listeners = new Map(KINDS.map((kind) => [kind, new Set()]));

/**
 * Calls the listener with each event of a kind. Returns a function that ends this.
 * @template {Kind} K
 * @param {K} kind @param {(data: Events[K]) => void} listener
 */
export function onEvent(kind, listener) {
  listeners.get(kind)?.add(listener);
  return () => void listeners.get(kind)?.delete(listener);
}

/** Follows what the server tells, for as long as the page is open. */
export function followEvents() {
  const source = new EventSource("/events");
  for (const kind of KINDS) {
    source.addEventListener(kind, (event) => {
      const data = JSON.parse(event.data);
      for (const listener of listeners.get(kind) ?? []) listener(data);
    });
  }
  source.onerror = () => {
    // The browser connects again by itself unless the server has refused.
    if (source.readyState === EventSource.CLOSED) setTimeout(followEvents, AGAIN_MS);
  };
}
