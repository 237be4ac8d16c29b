// Conversations: ask, stop, return to an earlier one. An answer keeps running while another conversation is shown.

import * as api from "../base/api.js";
import { Turn } from "./answer.js";
import { byId, el, formatCount, renderProblem } from "../base/dom.js";
import { goTo, place } from "../base/router.js";
import { toScope } from "./scope.js";
import { loadConversations } from "./conversations.js";
import { closeOptions } from "./options.js";
import { buildFilter, EVERYTHING, getScope, health, library, loadHealth, options } from "../base/state.js";
import { papersLoaded, setOptions } from "../base/state.js";

const SEARCHING = ["papers", "evidence", "search_again", "search_ended"]; // the events of a deep search

class Conversation {
  constructor(id = null) {
    this.id = id;
    this.title = "";
    this.root = el("div", { class: "turns" });
    this.turns = [];
    this.answered = 0;
    this.running = null; // the AbortController of the running answer
    this.scope = EVERYTHING; // what is searched, while another conversation is shown
  }

  /** Loads the turns from the server. Throws ApiError. */
  async load() {
    const { title, turns } = await api.getConversation(this.id);
    await papersLoaded; // a report's references name their authors
    this.title = title;
    this.answered = turns.length;
    this.scope = turns.length ? toScope(turns.at(-1).scope) : EVERYTHING;
    this.turns = turns.map((reply, index) => {
      const turn = new Turn(reply.message, { onAskAll: () => this.askAll(reply.message) });
      turn.finish(reply, { whole: true, open: index === turns.length - 1 });
      return turn;
    });
    this.root.replaceChildren(...this.turns.map((turn) => turn.root));
  }

  /** replaces: the number of the turn in whose place this one is asked. */
  async ask(message, replaces = null) {
    for (const turn of this.turns) turn.fold();
    const onAskAll = () => this.askAll(message);
    const turn = new Turn(message, { live: true, onRetry: () => this.askAgain(turn), onAskAll });
    this.turns.push(turn);
    this.root.append(turn.root);
    this.title ||= message;
    this.running = new AbortController();
    render();
    scrollToTurn(turn);
    announce("Searching your papers.");
    try {
      const request = buildRequest(message, this.id, replaces, options.get());
      for await (const { event, data } of api.ask(request, this.running.signal)) {
        this.show(turn, event, data);
      }
    } catch (thrown) {
      if (api.isAbort(thrown)) {
        turn.showStopped();
        if (turn.sentences.hasChildNodes()) {
          turn.stored = turn.number; // the server keeps what was shown
          this.answered += 1;
        }
      } else turn.showError(api.toApiError(thrown));
      if (!this.answered) this.id = null; // the server has no conversation to follow up on
    } finally {
      this.running = null;
    }
    if (this === current) updateAddress();
    render();
    loadConversations();
  }

  /** Shows an event of an answer. */
  show(turn, event, data) {
    if (SEARCHING.includes(event)) {
      const said = turn.showSearch(data);
      if (said) announce(`${said}.`);
    } else if (event === "retrieved") {
      this.id = data.conversation;
      turn.number = data.turn;
      turn.showHits(data.hits);
      announce(`Reading ${formatCount(data.hits.length, "passage")}.`);
    } else if (event === "sentence") {
      turn.addSentence(data);
    } else if (event === "thinking") {
      turn.showThinking(data.model);
      announce("The model is thinking.");
    } else if (event === "checking") {
      turn.showChecking(data.count);
      if (data.count) announce(`Checking ${formatCount(data.count, "more statement")}.`);
    } else if (event === "done") {
      turn.finish(data);
      this.answered += 1;
      this.id = data.conversation;
      const answered = `Answered, with ${formatCount(data.citations.length, "citation")}.`;
      announce(data.sentences.length ? answered : data.answer);
    }
  }

  askAgain(turn) {
    if (this.running) return;
    this.turns = this.turns.filter((other) => other !== turn);
    turn.root.remove();
    this.ask(turn.message, turn.stored);
  }

  /** Asks the same question about all papers. */
  askAll(message) {
    if (this.running) return;
    setOptions(EVERYTHING);
    this.ask(message);
  }

  /** Shows the current names of papers in earlier answers. */
  async refresh() {
    if (!this.id || this.running) return;
    const { turns } = await api.getConversation(this.id);
    for (const turn of this.turns) {
      const reply = turns.find((each) => each.turn === turn.reply?.turn);
      if (reply) turn.refresh(reply);
    }
  }
}

let current = new Conversation();
const running = new Set(); // conversations with a running answer, shown or not

/** Scrolls the question to the top, so that its answer grows below it. */
function scrollToTurn(turn) {
  if (turn) byId("ask-scroll").scrollTop = turn.root.previousSibling ? turn.root.offsetTop : 0;
}

const announce = (text) => {
  byId("said").textContent = text;
};

/** The request for a question, with the current options. */
const buildRequest = (message, conversation, replaces, chosen) => ({
  message,
  conversation,
  replaces,
  listed: true,
  top_k: chosen.topK,
  use_reranker: chosen.reranker,
  model: chosen.model,
  ...buildFilter(chosen),
  style: chosen.style,
  mode: chosen.deep ? "deep" : "quick",
});

/** Puts the shown conversation into the address. */
function updateAddress() {
  byId("to-ask").setAttribute("href", current.id ? `#c/${current.id}` : "#ask");
  if (place.get().view === "ask") goTo({ id: current.id ?? "" }, { replace: true });
}

/** Shows a conversation, with its own choice of papers and sections. */
function switchTo(conversation) {
  current.scope = getScope();
  current = conversation;
  setOptions(current.scope);
}

function render() {
  for (const conversation of [...running]) if (!conversation.running) running.delete(conversation);
  if (current.running) running.add(current);
  const turns = byId("turns");
  if (turns.firstChild !== current.root) turns.replaceChildren(current.root);
  const empty = !current.turns.length && !current.root.hasChildNodes();
  byId("welcome").hidden = !empty;
  byId("conversation-head").hidden = !current.turns.length;
  byId("conversation-title").hidden = empty;
  byId("conversation-title").textContent = current.title || "Conversation";
  byId("conversation-about").textContent = formatCount(current.turns.length, "question");
  byId("export").hidden = !current.answered;
  if (current.id) byId("export").href = api.markdownUrl(current.id);
  byId("send").hidden = current.running !== null;
  byId("stop").hidden = current.running === null;
  document.title = current.title ? `${current.title} · Folio` : "Folio";
}

/** Shows the conversation with this id; null: a conversation without an id yet, or a new one. */
export async function showConversation(id) {
  if (current.id !== id || (id === null && current.answered)) {
    const live = [...running].find((conversation) => conversation.id === id && id !== null);
    switchTo(live ?? new Conversation(id));
    render();
    if (id && !live) await loadConversation(current);
  }
  updateAddress();
  render();
}

async function loadConversation(conversation) {
  conversation.root.replaceChildren(el("p", { class: "working" }, "Loading the conversation"));
  render();
  try {
    await conversation.load();
    if (conversation !== current) return;
    if (!Object.keys(place.get().query).length) setOptions(conversation.scope); // else the address has its own
    render();
    scrollToTurn(conversation.turns.at(-1));
  } catch (thrown) {
    const error = api.toApiError(thrown);
    const gone = [404, 422].includes(error.status);
    const retry = gone ? newConversation : () => loadConversation(conversation);
    conversation.root.replaceChildren(renderProblem(error, retry, gone ? "New conversation" : "Try again"));
  }
}

export function newConversation() {
  switchTo(new Conversation());
  goTo({ view: "ask", id: "", query: {} });
  render();
  byId("question").focus();
}

export const getCurrentId = () => current.id;

function resizeQuestion() {
  const box = byId("question");
  box.style.setProperty("height", "auto");
  box.style.setProperty("height", `${box.scrollHeight}px`);
}

function send(event) {
  event?.preventDefault();
  const box = byId("question");
  const message = box.value.trim();
  if (!message || current.running || health.get()?.status === "empty") return;
  box.value = "";
  resizeQuestion();
  current.ask(message);
  closeOptions();
}

/** Renders the welcome text before the first question. */
function renderWelcome() {
  const box = byId("welcome");
  const now = health.get();
  if (!now) return;
  if (now.status === "empty") {
    box.replaceChildren(
      el("h1", {}, "Add your papers first"),
      el(
        "p",
        { class: "lead" },
        "Folio answers questions from your PDFs and cites the page for every sentence. ",
        "Nothing leaves this computer.",
      ),
      el(
        "label",
        { class: "drop", for: "files" },
        el(
          "span",
          { class: "drop-title" },
          "Drop PDFs or folders here, or ",
          el("span", { class: "as-link" }, "choose files"),
        ),
        el("span", { class: "drop-note" }, `Up to ${now.max_file_mb} MB each. A paper takes a few seconds.`),
      ),
    );
  } else {
    box.replaceChildren(
      el("h1", {}, "What do you want to know?"),
      el(
        "p",
        { class: "lead" },
        `Ask about ${formatCount(now.store?.papers ?? 0, "paper")}. Every sentence of an answer cites a page. `,
        "Select the citation to open that page with the quote marked.",
      ),
      el(
        "ul",
        { class: "keys" },
        renderKey("/", "to write a question"),
        renderKey(`Alt+1 … ${document.querySelectorAll(".views a").length}`, "to switch views"),
        renderKey("← →", "to turn pages"),
        renderKey("Esc", "to close a page"),
      ),
    );
  }
}

const renderKey = (name, does) => el("li", {}, el("kbd", {}, name), ` ${does}`);

/** Shows why the server's state could not be loaded, with a button to try again. */
export function showStartError(thrown) {
  const again = () => loadHealth().catch(showStartError);
  byId("welcome").replaceChildren(el("h1", {}, "Folio is not ready"), renderProblem(api.toApiError(thrown), again));
}

export function setUpChat() {
  byId("composer").addEventListener("submit", send);
  byId("question").addEventListener("input", resizeQuestion);
  byId("question").addEventListener("keydown", (event) => {
    // While an input method composes a word, as for Japanese, Enter only confirms the word.
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
  health.onChange((now) => {
    renderWelcome();
    byId("question").disabled = byId("send").disabled = now?.status === "empty";
  });
  library.onChange(() => current.refresh().catch(() => {})); // else they keep their earlier names
  render();
}
