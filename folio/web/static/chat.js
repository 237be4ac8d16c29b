// Conversations: asking, stopping, going back to an earlier one. A running answer goes on while another is looked at.

import * as api from "./api.js";
import { Turn } from "./answer.js";
import { byId, count, el, problem } from "./dom.js";
import { loadConversations } from "./side.js";
import { changed, loadHealth, onChange, options, papersKnown, shared } from "./shared.js";

class Conversation {
  constructor(id = null) {
    this.id = id;
    this.title = "";
    this.root = el("div", { class: "turns" });
    this.turns = [];
    this.answered = 0;
    this.running = null; // the AbortController of the answer that is being made
  }

  /** The turns that the server has. Raises ApiError. */
  async load() {
    const { title, turns } = await api.conversation(this.id);
    await papersKnown; // a report's references name their authors
    this.title = title;
    this.answered = turns.length;
    this.turns = turns.map((reply, index) => {
      const turn = new Turn(reply.message, {});
      turn.finish(reply, { whole: true, open: index === turns.length - 1 });
      return turn;
    });
    this.root.replaceChildren(...this.turns.map((turn) => turn.root));
  }

  async ask(message) {
    this.turns.forEach((turn) => turn.fold());
    const turn = new Turn(message, { live: true, onRetry: () => this.again(turn) });
    this.turns.push(turn);
    this.root.append(turn.root);
    this.title ||= message;
    this.running = new AbortController();
    drawn();
    toTop(turn);
    say("Searching the papers.");
    try {
      for await (const { event, data } of api.ask(asked(message, this.id), this.running.signal)) {
        if (event === "retrieved") {
          this.id = data.conversation;
          turn.reading(data.hits);
          say(`Reading ${count(data.hits.length, "passage")}.`);
        } else if (event === "sentence") {
          turn.add(data);
        } else if (event === "done") {
          turn.finish(data);
          this.answered += 1;
          this.id = data.conversation;
          say(data.refused ? data.answer : `Answered, with ${count(data.citations.length, "citation")}.`);
        }
      }
    } catch (thrown) {
      if (api.isAbort(thrown)) turn.stopped();
      else turn.fail(api.shown(thrown));
      if (!this.answered) this.id = null; // there is nothing yet to follow up on
    } finally {
      this.running = null;
    }
    if (this === current) remember();
    drawn();
    loadConversations();
  }

  again(turn) {
    if (this.running) return;
    this.turns = this.turns.filter((other) => other !== turn);
    turn.root.remove();
    this.ask(turn.message);
  }
}

let current = new Conversation();
const running = new Set(); // conversations that are answering, and may be out of sight

/** The question stands at the top, and its answer grows below it. */
function toTop(turn) {
  if (turn) byId("ask-scroll").scrollTop = turn.root.previousSibling ? turn.root.offsetTop : 0;
}

const say = (text) => {
  byId("said").textContent = text;
};

/** The body of a question, by the options as they are. */
const asked = (message, conversation) => ({
  message,
  conversation,
  top_k: options.topK,
  use_reranker: options.reranker,
  model: options.model,
  papers: [...options.papers],
  style: options.style,
});

/** The address says which conversation is shown. */
function remember() {
  const hash = current.id ? `#c/${current.id}` : "#ask";
  byId("to-ask").setAttribute("href", hash);
  if (/^#(c\/|ask)|^$/.test(location.hash)) history.replaceState(null, "", hash);
}

function drawn() {
  for (const conversation of [...running]) if (!conversation.running) running.delete(conversation);
  if (current.running) running.add(current);
  const turns = byId("turns");
  if (turns.firstChild !== current.root) turns.replaceChildren(current.root);
  const empty = !current.turns.length && !current.root.hasChildNodes();
  byId("welcome").hidden = !empty;
  byId("conversation-head").hidden = !current.turns.length;
  byId("conversation-title").hidden = empty;
  byId("conversation-title").textContent = current.title || "Conversation";
  byId("conversation-about").textContent = count(current.turns.length, "question");
  byId("export").hidden = !current.answered;
  if (current.id) byId("export").href = api.markdownOf(current.id);
  byId("send").hidden = current.running !== null;
  byId("stop").hidden = current.running === null;
  document.title = current.title ? `${current.title} · Folio` : "Folio";
}

/** Shows a conversation: by its id; null is the one that has none yet, or a new one. */
export async function showConversation(id) {
  if (current.id !== id || (id === null && current.answered)) {
    const live = [...running].find((conversation) => conversation.id === id && id !== null);
    current = live ?? new Conversation(id);
    drawn();
    if (id && !live) await fetched(current);
  }
  remember();
  drawn();
}

async function fetched(conversation) {
  conversation.root.replaceChildren(el("p", { class: "working" }, "Opening the conversation"));
  drawn();
  try {
    await conversation.load();
    if (conversation !== current) return;
    drawn();
    toTop(conversation.turns.at(-1));
  } catch (thrown) {
    const error = api.shown(thrown);
    const gone = [404, 422].includes(error.status);
    const retry = gone ? newConversation : () => fetched(conversation);
    conversation.root.replaceChildren(problem(error, retry, gone ? "New conversation" : "Try again"));
  }
}

export function newConversation() {
  current = new Conversation();
  location.hash = "#ask";
  remember();
  drawn();
  byId("question").focus();
}

export const currentId = () => current.id;

function grow() {
  const box = byId("question");
  box.style.setProperty("height", "auto");
  box.style.setProperty("height", `${box.scrollHeight}px`);
}

function send(event) {
  event?.preventDefault();
  const box = byId("question");
  const message = box.value.trim();
  if (!message || current.running || shared.health?.status === "empty") return;
  box.value = "";
  grow();
  current.ask(message);
  changed("asked");
}

/** What is shown before the first question. */
function welcome() {
  const box = byId("welcome");
  const { health } = shared;
  if (!health) return;
  if (health.status === "empty") {
    box.replaceChildren(
      el("h1", {}, "Your papers go here first"),
      el(
        "p",
        { class: "lead" },
        "Folio answers from PDFs that you give it, and shows the page behind every sentence. ",
        "Nothing leaves this computer.",
      ),
      el(
        "label",
        { class: "drop", for: "files" },
        el("span", { class: "drop-title" }, "Drop PDFs here, or ", el("span", { class: "as-link" }, "choose files")),
        el("span", { class: "drop-note" }, `Up to ${health.max_file_mb} MB each. A paper takes a few seconds.`),
      ),
    );
  } else {
    box.replaceChildren(
      el("h1", {}, "What do you want to know?"),
      el(
        "p",
        { class: "lead" },
        `${count(health.store.papers, "paper is", "papers are")} here. Every sentence of an answer names its page: `,
        "choose the name, and the page opens beside it with the words marked.",
      ),
      el(
        "ul",
        { class: "keys" },
        key("/", "to ask"),
        key("Alt+1 2 3", "for the views"),
        key("← →", "to turn pages"),
        key("Esc", "to close a page"),
      ),
    );
  }
}

const key = (name, does) => el("li", {}, el("kbd", {}, name), ` ${does}`);

/** The store cannot be looked at: told, with a button. */
export function welcomeProblem(thrown) {
  const again = () => loadHealth().catch(welcomeProblem);
  byId("welcome").replaceChildren(el("h1", {}, "Not ready"), problem(api.shown(thrown), again));
}

export function setUpChat() {
  byId("composer").addEventListener("submit", send);
  byId("question").addEventListener("input", grow);
  byId("question").addEventListener("keydown", (event) => {
    // While a word is still being put together, as in Japanese, Enter chooses it.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  });
  byId("stop").onclick = () => {
    current.running?.abort();
    byId("question").focus();
  };
  byId("new").onclick = () => {
    if (byId("side").matches(":popover-open")) byId("side").hidePopover();
    newConversation();
  };
  onChange("health", () => {
    welcome();
    byId("question").disabled = byId("send").disabled = shared.health.status === "empty";
  });
  drawn();
}
