// The view of conversations: ask, stop, return to an earlier one.

import * as api from "../base/api.js";
import { announce, el, makeIcon, renderProblem, showToast } from "../base/dom.js";
import { followCard } from "../base/card.js";
import { onEvent } from "../base/events.js";
import { goTo, linkTo, place } from "../base/router.js";
import { EVERYTHING, getScope, health, library, loadHealth, options, selection, setOptions } from "../base/state.js";
import { t } from "../base/strings.js";
import { currentQuery, followAddress, namesScope, readTurn } from "./address.js";
import { box, composer, keepQuestion, setUpComposer, showQuestion, showRunning } from "./composer.js";
import { Conversation } from "./conversation.js";
import { loadConversations } from "./conversations.js";
import { showFailure } from "../base/failure.js";
import { renderFirstPapers } from "./first_papers.js";
import { mode } from "./mode.js";
import { setUpModels } from "./models.js";
import { setUpOptions } from "./options.js";
import { setUpSelecting } from "./selecting.js";
import { Examples, FollowUps } from "./suggestions.js";

const title = el("h1", { class: "unseen", id: "conversation-title" });
const count = el("p", { class: "about" });
const exporter = el("a", { class: "button quiet", id: "export", download: true }, makeIcon("export"), t("ask.export"));
const head = el("header", { class: "conversation-head", hidden: true }, count, exporter);
const welcome = el("div", { id: "welcome", class: "welcome" });
const turns = el("div", { id: "turns" });
const examples = new Examples((question) => send(question));
const followUps = new FollowUps((question) => send(question));
const scroller = el(
  "div",
  { class: "scroll", id: "ask-scroll", tabindex: "0", role: "region", "aria-label": t("ask.conversation") },
  el("div", { class: "reading" }, title, head, welcome, turns),
);

/** @type {import("./conversation.js").Host} */
const host = {
  render: (conversation) => {
    if (conversation === current) render();
  },
  onAsked: (conversation, turn) => {
    if (conversation === current) scrollToTurn(turn);
  },
  onStored: (conversation) => {
    if (conversation === current) updateAddress();
    render();
  },
  onAnswered: (conversation) => {
    host.onStored(conversation);
    loadConversations();
  },
  showBranch: (conversation, turn) => {
    if (conversation !== current) return;
    goTo({ query: { ...currentQuery(current), turn: turn === null ? "" : String(turn) } });
    if (current.through === turn) loadBranch(current, turn); // the address has stayed the same
  },
};

let current = new Conversation(host);
let link = el("a"); // of the header, to this view
let isFollowing = false; // the options are being taken from the address

/** Scrolls the question to the top, so that its answer grows below it. */
/** @param {import("./answer.js").Turn | undefined} turn */
function scrollToTurn(turn) {
  if (turn) (turn.root.previousSibling ? turn.root : scroller.firstElementChild)?.scrollIntoView();
}

/** The place of the conversation that is shown. */
const getPlace = () => ({ id: current.address, query: currentQuery(current) });

/** Puts the shown conversation and its options into the address. Beside other views, Back leads to what it was. */
function updateAddress() {
  if (current.id && place.get().view === "ask") current.address = current.id;
  const { id, query } = getPlace();
  link.href = linkTo({ view: "ask", id, query });
  if (place.get().view === "ask") goTo({ id, query }, { replace: true });
}

function render() {
  if (turns.firstChild !== current.root) turns.replaceChildren(current.root);
  const isEmpty = !current.turns.length && !current.root.hasChildNodes();
  welcome.hidden = !isEmpty;
  head.hidden = !current.turns.length;
  title.hidden = isEmpty;
  title.textContent = current.title || t("ask.conversation");
  count.textContent = t("ask.questions", { count: current.turns.length });
  exporter.hidden = !current.isAnswered;
  if (current.id) exporter.href = api.markdownUrl(current.id, current.through);
  showRunning(current.running !== null);
  showQuestion(current);
  if (place.get().view === "ask") document.title = current.title ? `${current.title} · Folio` : "Folio";
  const last = current.turns.at(-1);
  if (last && last.root !== followUps.root.parentElement) last.root.append(followUps.root);
  followUps.load(current.running ? null : current.lastReply);
  if (isEmpty) loadExamples();
}

function loadExamples() {
  const now = health.get();
  if (!now?.store || place.get().view !== "ask") return;
  examples.load(`${now.store.generation} ${now.store.papers}`, () => !welcome.hidden);
}

/** Shows the conversation that the address names, with its branch and its options. @param {string | null} wanted */
export async function showConversation(wanted) {
  const id = wanted ?? "";
  const turn = readTurn();
  if (current.address !== id) {
    leaveFor(new Conversation(host, id));
    follow();
    current.left = null;
    render();
    if (id) await load(current, turn);
  } else {
    follow();
    if (id && turn !== current.branch && !current.running) await loadBranch(current, turn);
  }
  updateAddress();
  render();
}

function follow() {
  isFollowing = true;
  followAddress(current.scope);
  isFollowing = false;
}

/** @param {Conversation} conversation @param {number | null} turn */
async function load(conversation, turn) {
  conversation.root.replaceChildren(el("p", { class: "working" }, t("ask.loading")));
  render();
  try {
    await conversation.load(turn);
    if (conversation !== current || conversation.loading) return;
    if (!namesScope(place.get().query)) setOptions(conversation.scope); // else the address has its own
    render();
    scrollToTurn(conversation.turns.at(-1));
  } catch (thrown) {
    const error = api.toApiError(thrown);
    const isGone = [404, 422].includes(error.status);
    const retry = isGone ? newConversation : () => load(conversation, turn);
    conversation.root.replaceChildren(renderProblem(error, retry, t(isGone ? "ask.new" : "again")));
  }
}

/** Shows another branch of a conversation, where it was on the screen. */
/** @param {Conversation} conversation @param {number | null} turn */
async function loadBranch(conversation, turn) {
  const pressed = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  const step = pressed?.dataset.step;
  const at = conversation.turns.findIndex(({ root }) => root.contains(pressed));
  try {
    await conversation.load(turn);
  } catch (thrown) {
    return showFailure(thrown);
  }
  if (conversation !== current) return;
  render();
  if (!step || at < 0) return;
  const { root } = conversation.turns[at] ?? {};
  const buttons = /** @type {HTMLButtonElement[]} */ ([...(root?.querySelectorAll("[data-step]") ?? [])]);
  const same = buttons.find((button) => button.dataset.step === step && !button.disabled);
  (same ?? buttons.find((button) => !button.disabled))?.focus({ preventScroll: true });
  announce(root?.querySelector(".branches span")?.textContent ?? "");
}

export function newConversation() {
  leaveConversation();
  goTo({ view: "ask", id: "", query: currentQuery(current) });
  render();
  box.focus();
}

/** @param {Conversation} next */
function leaveFor(next) {
  current.left = getScope();
  current.leave();
  current = next;
}

function leaveConversation() {
  leaveFor(new Conversation(host));
  selection.set(null);
  isFollowing = true; // the address is still the one of the conversation before
  const { project } = options.get().filters; // a new conversation stays in its project
  setOptions(project ? { papers: [], filters: { project } } : EVERYTHING);
  isFollowing = false;
}

/** The id of the conversation in the address; null without one. */
export const getCurrentId = () => current.address || null;

/**
 * Asks a question, with the options and about the words that are chosen. Returns whether the box may be emptied.
 * @param {string} message @param {boolean} [isEverywhere]
 * @param {Partial<import("../base/options.js").Options>} [how] options in the place of those that are chosen
 */
function send(message, isEverywhere = false, how = {}) {
  if (current.running) showToast(t("ask.busy"));
  if (current.running || health.get()?.status === "empty") return false;
  if (current.loading) return sendOnceLoaded(message, isEverywhere);
  const question = { message, options: { ...options.get(), ...how }, selection: selection.get(), isEverywhere };
  selection.set(null);
  current.ask(question);
  return true;
}

/** Asks a question after the turns that are being loaded. What was typed stays in the box until then. */
/** @param {string} message @param {boolean} isEverywhere */
function sendOnceLoaded(message, isEverywhere) {
  const conversation = current;
  const isInBox = () => box.value.trim() === message;
  const isTyped = isInBox();
  const ask = () => {
    if (conversation !== current) return;
    if (!isTyped) send(message, isEverywhere);
    else if (isInBox()) composer.requestSubmit(); // else the person goes on writing
  };
  conversation.loading?.then(ask, () => {});
  return !isTyped;
}

/** Tells the server that a person opened a page which an answer cites. */
/** @param {{paper: string, page: number, opener?: HTMLElement | null}} target */
export function noteOpened({ paper, page, opener }) {
  const reply = opener ? current.turns.find(({ root }) => root.contains(opener))?.reply : null;
  if (!reply || !health.get()?.logged) return;
  if (!reply.citations.some((cited) => cited.paper === paper && cited.page === page)) return;
  const { conversation, turn } = reply;
  api.recordOpened({ conversation, turn, paper, page }).catch(() => {}); // it is only missing among the opened ones
}

/** Asks one paper a question, in a new conversation. @param {string} paper @param {import("../paper/questions.js").Asked} asked */
export function askPaper(paper, { question, instruction }) {
  newConversation();
  setOptions({ papers: [paper] });
  send(question, false, instruction ? { instruction } : {});
}

/** Asks a question about the words that were selected in the reader; "": the person writes it. */
/** @param {string} question */
export function askAboutSelection(question) {
  if (question) send(question);
}

// The start

let welcomed = ""; // what the welcome text was rendered for: rendered again, it would take the focus from its buttons

/** Renders the welcome text before the first question. */
function renderWelcome() {
  const now = health.get();
  if (!now) return;
  const state = `${now.status} ${now.store?.papers}`;
  if (state === welcomed) return loadExamples();
  welcomed = state;
  if (now.status === "empty") return welcome.replaceChildren(...renderFirstPapers(now.max_file_mb));
  const views = document.querySelectorAll(".views a").length;
  welcome.replaceChildren(
    el("h1", {}, t("ask.welcome")),
    el("p", { class: "lead" }, t("ask.welcome.text", { papers: t("ask.papers", { count: now.store?.papers ?? 0 }) })),
    examples.root,
    el(
      "ul",
      { class: "keys" },
      renderKey("/", t("ask.key.question")),
      renderKey(`Alt+1 … ${views}`, t("ask.key.views")),
      renderKey("← →", t("ask.key.pages")),
      renderKey("Esc", t("ask.key.close")),
    ),
  );
  loadExamples();
}

/** @param {string} name @param {string} does */
const renderKey = (name, does) => el("li", {}, el("kbd", {}, name), ` ${does}`);

/** Shows why the server's state could not be loaded, with a button to try again. @param {unknown} thrown */
export function showStartError(thrown) {
  const again = () => loadHealth().catch(showStartError);
  welcomed = "";
  welcome.replaceChildren(el("h1", {}, t("ask.not_ready")), renderProblem(api.toApiError(thrown), again));
}

/** Shows changes by another tab. @param {{changed: string[], deleted: string[]}} conversations */
function followConversations({ changed, deleted }) {
  if (current.lastNumber !== null && deleted.includes(current.id)) {
    keepQuestion();
    if (place.get().view === "ask") newConversation();
    else {
      leaveConversation();
      updateAddress();
      render();
    }
    showToast(t("ask.deleted"));
  } else if (changed.includes(current.id)) current.refresh().catch(() => {});
}

/** Builds the view. toAsk: the link of the header to it. @param {HTMLElement} view @param {HTMLAnchorElement} toAsk */
export function setUpChat(view, toAsk) {
  link = toAsk;
  view.append(scroller, composer);
  setUpOptions();
  setUpModels();
  followCard(scroller);
  setUpSelecting(scroller);
  setUpComposer({
    ask: send,
    stop: () => current.stop(),
    show: () => {
      if (place.get().view !== "ask") goTo({ view: "ask", ...getPlace() });
    },
  });
  options.onChange(() => {
    if (!isFollowing) updateAddress();
  });
  // The page shows another conversation by showConversation; another branch and other options are shown here.
  place.onChange((now, before) => {
    if (now.view !== "ask" || before.view !== "ask" || now.id !== before.id) return;
    if (now.query !== before.query) showConversation(now.id);
  });
  mode.onChange(() => {
    for (const turn of current.turns) turn.updateMode();
  });
  health.onChange(renderWelcome);
  onEvent("conversations", followConversations);
  onEvent("hello", () => void current.refresh().catch(() => {})); // events were missed
  library.onChange(() => current.refresh().catch(() => {})); // else they keep their earlier names
  render();
}
