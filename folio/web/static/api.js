// Requests to the server.

/** An error and its remedy, one sentence each. `status` is 0 if the server did not respond. */
export class ApiError extends Error {
  constructor(error, remedy, status = 0) {
    super(error);
    this.error = error;
    this.remedy = remedy;
    this.status = status;
  }
}

const connectionError = () =>
  new ApiError("Folio is not responding.", "Check that Folio is still running in its terminal, then try again.");

/** Turns anything thrown into an ApiError that can be shown. */
export function toApiError(thrown) {
  if (thrown instanceof ApiError) return thrown;
  console.error(thrown);
  return new ApiError("Something went wrong in this page.", "Reload it. If this happens again, please report it.");
}

/** Whether a retry would fail in the same way. */
export const isPermanent = (error) => error.status >= 400 && error.status < 500 && error.status !== 409;

export const isAbort = (thrown) => thrown?.name === "AbortError";

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (thrown) {
    throw isAbort(thrown) ? thrown : connectionError();
  }
  if (response.ok || response.status === 304) return response;
  throw refusal(response.status, await response.json().catch(() => ({})));
}

const refusal = (status, body) =>
  new ApiError(
    body.error ?? `The server responded with status ${status}.`,
    body.remedy ?? "The terminal that Folio runs in shows details.",
    status,
  );

const sendJson = (method, body, signal) => ({
  method,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

const postJson = (body, signal) => sendJson("POST", body, signal);
const getJson = async (path, options) => (await request(path, options)).json();

/** Yields the events of a stream as {event, data}. Throws on "error", and if the stream ends before "done". */
async function* streamEvents(path, options) {
  const reader = (await request(path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((thrown) => {
        throw isAbort(thrown) ? thrown : connectionError();
      });
      if (done) throw connectionError();
      text += value;
      const blocks = text.split(/\r\n\r\n|\n\n/);
      text = blocks.pop();
      for (const block of blocks) {
        const found = parseEvent(block);
        if (!found) continue;
        if (found.event === "error") throw new ApiError(found.data.error, found.data.remedy);
        yield found;
        if (found.event === "done") return;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parseEvent(block) {
  let event = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (field === "event") event = value;
    else if (field === "data") data.push(value); // other lines are comments that keep the connection open
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}

export const getHealth = () => getJson("/health");
export const search = (query, signal) => getJson("/search", postJson(query, signal));
export const ask = (message, signal) => streamEvents("/chat/stream", postJson(message, signal));
export const sendFeedback = (feedback) => request("/feedback", postJson(feedback));

export const listConversations = () => getJson("/conversations");
export const getConversation = (id) => getJson(`/conversations/${id}`);
export const deleteConversation = (id) => request(`/conversations/${id}`, { method: "DELETE" });
export const markdownUrl = (id) => `/conversations/${id}/markdown`;
export const getZoteroNote = async (id, turn) =>
  (await request(`/conversations/${id}/zotero-note?turn=${turn}`)).text();

/** All papers, and their tag; null if that is still this tag. */
export async function listPapers(tag = "") {
  const response = await request("/papers", { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
  return response.status === 304 ? null : { ...(await response.json()), tag: response.headers.get("ETag") };
}
export const findPapers = (query, signal) => getJson(`/papers?${new URLSearchParams({ query })}`, { signal });
export const getPaper = (id) => getJson(`/papers/${id}`);
export const editPaper = (id, edits) => getJson(`/papers/${id}`, sendJson("PATCH", edits));
export const deletePaper = (id) => getJson(`/papers/${id}`, { method: "DELETE" });
/** A bibliography of these papers: "/papers.bib" or "/papers.csl.json". */
export const exportPapers = async (path, papers) => (await request(path, postJson({ papers }))).blob();
export const pdfUrl = (id, page) => `/pdf/${id}#page=${page}`;

/**
 * Sends a PDF to the server's queue; resolves to its entry there once the server has kept it. onSent: called with the
 * share that was sent, from 0 to 1. fetch() does not tell that.
 */
export function sendUpload(file, onSent, signal) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", `/uploads?${new URLSearchParams({ name: file.name })}`);
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

export const listUploads = () => getJson("/uploads");
export const followUploads = (signal) => streamEvents("/uploads/events", { signal });
export const cancelUpload = (id) => request(`/uploads/${id}`, { method: "DELETE" });
export const cancelUploads = () => request("/uploads", { method: "DELETE" });
export const retryUpload = (id) => request(`/uploads/${id}/retry`, { method: "POST" });
export const retryUploads = () => request("/uploads/retry", { method: "POST" });

/** Works at services on the internet, where the server may ask them. */
export function discover(query, signal) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== false);
  return getJson(`/discover?${new URLSearchParams(given)}`, { signal });
}

export const fetchPapers = (ids, signal) => streamEvents("/papers/fetch", postJson({ ids }, signal));

export const listCitations = () => getJson("/citations");
export const getCitations = (id, signal) => getJson(`/papers/${id}/citations`, { signal });
export const lookUpCitations = (id, signal) => getJson(`/papers/${id}/citations`, { method: "POST", signal });

/** A page as a picture, and for each quote whether it is marked. */
export async function getPicture(id, page, quotes, signal) {
  const query = new URLSearchParams(quotes.map((quote) => ["quote", quote]));
  const response = await request(`/papers/${id}/pages/${page}.png${quotes.length ? `?${query}` : ""}`, { signal });
  const marked = (response.headers.get("Folio-Marked") ?? "").split(",").map((flag) => flag.trim() === "1");
  return { blob: await response.blob(), marked: quotes.map((_, index) => marked[index] ?? false) };
}
