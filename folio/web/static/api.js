// Everything that is asked of the server.

/** What went wrong, in the server's two sentences. `status` is 0 where no server answered. */
export class ApiError extends Error {
  constructor(error, remedy, status = 0) {
    super(error);
    this.error = error;
    this.remedy = remedy;
    this.status = status;
  }
}

const lost = () =>
  new ApiError("Folio does not answer.", "See whether Folio is still running in its terminal, then try again.");

/** Anything that was thrown, as an ApiError to be shown. */
export function shown(thrown) {
  if (thrown instanceof ApiError) return thrown;
  console.error(thrown);
  return new ApiError("The page made a mistake.", "Load it again; if it comes back, tell us what you did.");
}

/** Whether the same request would be refused again. */
export const isLasting = (error) => error.status >= 400 && error.status < 500 && error.status !== 409;

export const isAbort = (thrown) => thrown?.name === "AbortError";

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (thrown) {
    throw isAbort(thrown) ? thrown : lost();
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new ApiError(
    said.error ?? `The server answered ${response.status}.`,
    said.remedy ?? "Look into the terminal that Folio runs in.",
    response.status,
  );
}

const posted = (body, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

const got = async (path, options) => (await request(path, options)).json();

/** The events of a stream, as {event, data}. An event "error" is thrown; so is a stream that ends before "done". */
async function* events(path, options) {
  const reader = (await request(path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((thrown) => {
        throw isAbort(thrown) ? thrown : lost();
      });
      if (done) throw lost();
      text += value;
      const blocks = text.split(/\r\n\r\n|\n\n/);
      text = blocks.pop();
      for (const block of blocks) {
        const found = parsed(block);
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

function parsed(block) {
  let event = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (field === "event") event = value;
    else if (field === "data") data.push(value); // a line that begins with a colon only keeps the connection open
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}

export const health = () => got("/health");
export const search = (query, signal) => got("/search", posted(query, signal));
export const ask = (message, signal) => events("/chat/stream", posted(message, signal));
export const feedback = (mark) => request("/feedback", posted(mark));

export const conversations = () => got("/conversations");
export const conversation = (id) => got(`/conversations/${id}`);
export const deleteConversation = (id) => request(`/conversations/${id}`, { method: "DELETE" });
export const markdownOf = (id) => `/conversations/${id}/markdown`;

export const papers = () => got("/papers");
export const paper = (id) => got(`/papers/${id}`);
export const deletePaper = (id) => got(`/papers/${id}`, { method: "DELETE" });
export const pdfOf = (id, page) => `/pdf/${id}#page=${page}`;

export function addPaper(file) {
  const form = new FormData();
  form.append("file", file);
  return events("/papers", { method: "POST", body: form });
}

/** A page as a picture, and for each quote whether it is marked in it. */
export async function picture(id, page, quotes, signal) {
  const query = new URLSearchParams(quotes.map((quote) => ["quote", quote]));
  const response = await request(`/papers/${id}/pages/${page}.png${quotes.length ? `?${query}` : ""}`, { signal });
  const marked = (response.headers.get("Folio-Marked") ?? "").split(",").map((said) => said.trim() === "1");
  return { blob: await response.blob(), marked: quotes.map((_, index) => marked[index] ?? false) };
}
