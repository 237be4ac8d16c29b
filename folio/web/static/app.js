// The page as a whole: views, keys, theme, and the models in use.

import { askAboutSelection, getConversationPlace, getCurrentId, newConversation } from "./ask/chat.js";
import { setUpChat, showConversation, showStartError } from "./ask/chat.js";
import { byId, el, fillTexts, formatCommands, formatCount, isolate, remember } from "./base/dom.js";
import { followEvents, onEvent } from "./base/events.js";
import { setUpFind } from "./find/find.js";
import { refreshLibrary, setUpLibrary } from "./library/library.js";
import { enterPanel, leavePanel } from "./base/panels.js";
import { goTo, place } from "./base/router.js";
import { setUpSearch } from "./search/search.js";
import { health, loadHealth, setOptions } from "./base/state.js";
import { loadConversations, setUpSide } from "./ask/conversations.js";
import { setUpPaper } from "./paper/paper.js";
import { closeReader, isReaderOpen, setUpReader } from "./reader/reader.js";
import { renderWork, setUpWorks } from "./find/works.js";

const VIEWS = ["ask", "search", "library", "find"]; // by the digit that opens it with Alt
const FIRST = { ask: "question", search: "query", library: "filter", find: "find-query" }; // what "/" focuses
const NAMES = { search: "Search", library: "Library", find: "Find papers", paper: "Paper" };
const SHOWN = [...VIEWS, "paper"];

const getView = () => (SHOWN.includes(place.get().view) ? place.get().view : "ask");

function route() {
  const view = getView();
  for (const name of SHOWN) byId(`view-${name}`).hidden = name !== view;
  for (const link of document.querySelectorAll(".views a")) {
    if (link.dataset.view === (view === "paper" ? "library" : view)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "ask") showConversation((place.get().view === "ask" && place.get().id) || null);
  else if (view !== "paper") document.title = `${NAMES[view]} · Folio`; // that is its title
}

function show(view) {
  goTo(view === "ask" ? getConversationPlace() : { view, id: "", query: {} });
}

function handleKey(event) {
  if (event.key === "Escape" && isReaderOpen() && !document.querySelector("dialog:modal, :popover-open")) {
    event.preventDefault();
    closeReader();
  } else if (event.altKey && /^Digit[1234]$/.test(event.code)) {
    event.preventDefault();
    const view = VIEWS[event.code.at(-1) - 1];
    show(view);
    byId("main").focus();
  } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
    if (typing || document.querySelector("dialog:modal")) return;
    event.preventDefault();
    byId(FIRST[getView()] ?? "main").focus();
  }
}

function setUpTheme() {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const update = () => button.setAttribute("aria-pressed", String(isDark()));
  button.onclick = () => {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    remember("theme", chosen);
    update();
  };
  system.addEventListener("change", update);
  update();
}

/** @param {Api.Health | null} now */
function renderModels(now) {
  if (!now) return;
  document.body.classList.toggle("unlogged", !now.logged);
  const { models, better, store, fingerprint } = now;
  const roles = [
    ["search: ", models.embedder],
    ["ranking: ", models.reranker],
    ["answers: ", models.llm],
  ];
  byId("foot-line").replaceChildren(
    store ? formatCount(store.papers, "paper") : "No papers yet",
    el(
      "span",
      {},
      roles.filter(([, model]) => model).flatMap(([role, model]) => [` · ${role}`, isolate(model)]),
    ),
  );
  byId("models-button").textContent = better.length ? "Improve answers" : "Models";
  const rows = [
    ["Search", models.embedder],
    ["Ranking", models.reranker ?? "none"],
    ["Answers", models.llm],
  ];
  if (store) {
    const size = `${(store.bytes / 1e6).toFixed(1)} MB`;
    rows.push(["Papers", `${formatCount(store.papers, "paper")}, ${formatCount(store.chunks, "passage")}, ${size}`]);
    rows.push(["Index", store.folder]);
    const parts = Object.entries(fingerprint).filter(([, value]) => value);
    rows.push(["Built with", parts.map((pair) => pair.join(" ")).join(", ")]);
  }
  byId("models-text").replaceChildren(
    el(
      "dl",
      {},
      rows.filter(([, what]) => what).flatMap(([name, what]) => [el("dt", {}, name), el("dd", {}, isolate(what))]),
    ),
    ...(better.length ? [el("h3", {}, "Improve answers")] : []),
    el(
      "ul",
      {},
      better.map((step) => el("li", {}, formatCommands(step[0].toUpperCase() + step.slice(1)))),
    ),
    ...describeChosen(now),
    el("p", {}, formatCommands("`folio doctor` or `python query.py --doctor` shows what is ready.")),
  );
}

const SETTINGS = { embedder: "EMBEDDER", reranker: "RERANKER", llm: "LLM" };

/** A hint that the settings choose built-in models. */
function describeChosen({ models, better }) {
  const chosen = Object.keys(SETTINGS).filter((role) => /built in/.test(models[role] ?? ""));
  if (better.length || !chosen.length) return [];
  const ways = chosen.map((role) => `\`${SETTINGS[role]}=auto\``).join(", ");
  const text = `Your settings choose built-in models. With ${ways}, better models are used when they are ready.`;
  return [el("p", {}, formatCommands(text))];
}

function ask(...ids) {
  newConversation();
  setOptions({ papers: ids });
}

const LOAD_MS = 2000; // between two loads of the papers: an ingest adds many in a second

/** Calls a function now, or later so that it is not called more often than this. @param {() => void} run */
function atMostEvery(ms, run) {
  let timer = 0;
  let isWanted = false;
  return function call() {
    isWanted = true;
    if (timer) return;
    isWanted = false;
    run();
    timer = setTimeout(() => {
      timer = 0;
      if (isWanted) call();
    }, ms);
  };
}

/** Shows what this page, another tab or a terminal changes. */
function followChanges() {
  const load = atMostEvery(LOAD_MS, () => {
    refreshLibrary({ ifChanged: true });
    loadHealth().catch(() => {});
  });
  for (const kind of ["hello", "papers", "failures"]) onEvent(kind, load);
  followEvents();
}

/** On a narrow screen, Back closes the panel that covers the page. */
function setUpPopovers() {
  const narrow = matchMedia("(max-width: 1199px)");
  for (const node of document.querySelectorAll("[popover]")) {
    node.addEventListener("beforetoggle", ({ newState }) => {
      if (newState === "closed") leavePanel(node);
      else if (narrow.matches) enterPanel(node, () => node.hidePopover());
    });
  }
}

fillTexts(document);
setUpReader({ ask: (_, question) => askAboutSelection(question) });
setUpChat(byId("view-ask"), byId("to-ask"));
setUpSearch();
setUpWorks({ ask, added: refreshLibrary });
setUpFind();
setUpSide(byId("side"), {
  create: newConversation,
  deleted: (id) => {
    if (id === getCurrentId()) newConversation();
  },
});
setUpLibrary(byId("view-library"), { bar: byId("adding"), ask });
setUpPaper(byId("view-paper"), { ask, renderWork });
health.onChange(renderModels);
byId("skip").onclick = () => byId("main").focus();
document.addEventListener("keydown", handleKey);
place.onChange(() => {
  route();
  const isTyped = ["search", "find"].includes(getView());
  if (isTyped && matchMedia("(hover: hover)").matches) byId(FIRST[getView()]).focus();
});
setUpTheme();
setUpPopovers();
followChanges();
loadHealth().catch((thrown) => {
  byId("foot-line").textContent = "Folio is not responding";
  showStartError(thrown);
});
refreshLibrary();
loadConversations();
route();
if (matchMedia("(hover: hover)").matches && !["library", "paper"].includes(getView())) byId(FIRST[getView()]).focus();
