// The page as a whole: which view is shown, the keys, the colours, what is in use.

import { currentId, newConversation, setUpChat, showConversation, welcomeProblem } from "./chat.js";
import { byId, count, el, withCommands, words } from "./dom.js";
import { refreshLibrary, setUpLibrary } from "./library.js";
import { askOnly, setUpOptions } from "./options.js";
import { setUpSearch } from "./search.js";
import { loadHealth, onChange, shared } from "./shared.js";
import { loadConversations, markCurrent, setUpSide } from "./side.js";
import { closeViewer, setUpViewer, viewerIsOpen } from "./viewer.js";

const VIEWS = ["ask", "search", "library"];
const FIRST = { ask: "question", search: "query", library: "filter" }; // where "/" goes

const viewNow = () => {
  const name = location.hash.slice(1).split("/")[0];
  return VIEWS.includes(name) ? name : "ask";
};

function route() {
  const view = viewNow();
  for (const name of VIEWS) byId(`view-${name}`).hidden = name !== view;
  for (const link of document.querySelectorAll(".views a")) {
    if (link.id === "to-ask" ? view === "ask" : link.hash === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "ask") showConversation(/^#c\/([\w-]+)$/.exec(location.hash)?.[1] ?? null).then(markCurrent);
  else document.title = `${view === "search" ? "Search" : "Library"} · Folio`;
  markCurrent();
}

function goTo(view) {
  location.hash = view === "ask" ? byId("to-ask").hash : `#${view}`;
}

function keys(event) {
  if (event.key === "Escape" && viewerIsOpen() && !document.querySelector("dialog:modal, :popover-open")) {
    event.preventDefault();
    closeViewer();
  } else if (event.altKey && /^Digit[123]$/.test(event.code)) {
    event.preventDefault();
    const view = VIEWS[event.code.at(-1) - 1];
    goTo(view);
    byId("main").focus();
  } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
    if (typing || document.querySelector("dialog:modal")) return;
    event.preventDefault();
    byId(FIRST[viewNow()]).focus();
  }
}

function colours() {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const tell = () => button.setAttribute("aria-pressed", String(dark()));
  button.onclick = () => {
    const chosen = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem("folio-theme", chosen);
    } catch {
      // Storage may be forbidden; then it holds until the page is left.
    }
    tell();
  };
  system.addEventListener("change", tell);
  tell();
}

function drawModels() {
  document.body.classList.toggle("unlogged", !shared.health.logged);
  const { models, better, store, fingerprint } = shared.health;
  const said = [["search: ", models.embedder], ["ranking: ", models.reranker], ["answers: ", models.llm]];
  byId("foot-line").replaceChildren(
    store ? count(store.papers, "paper") : "No papers yet",
    ...said.filter(([, model]) => model).flatMap(([does, model]) => [` · ${does}`, words(model)]),
  );
  byId("models-button").textContent = better.length ? "What would make it better" : "Models";
  const rows = [
    ["Finds passages", models.embedder],
    ["Ranks them", models.reranker ?? "not reranked"],
    ["Answers", models.llm],
  ];
  if (store) {
    const size = `${(store.bytes / 1e6).toFixed(1)} MB`;
    rows.push(["Papers", `${count(store.papers, "paper")}, ${count(store.chunks, "passage")}, ${size}`]);
    rows.push(["Index", store.folder]);
    const parts = Object.entries(fingerprint).filter(([, value]) => value);
    rows.push(["Made with", parts.map((pair) => pair.join(" ")).join(", ")]);
  }
  byId("models-text").replaceChildren(
    el(
      "dl",
      {},
      rows.filter(([, what]) => what).flatMap(([name, what]) => [el("dt", {}, name), el("dd", {}, words(what))]),
    ),
    el("h3", {}, better.length ? "What would make it better" : "The best models are in use."),
    el("ul", {}, better.map((said) => el("li", {}, withCommands(said[0].toUpperCase() + said.slice(1))))),
  );
}

setUpViewer();
setUpOptions();
setUpChat();
setUpSearch();
setUpSide((id) => {
  if (id === currentId()) newConversation();
});
setUpLibrary({
  show: () => goTo("library"),
  ask: (id) => {
    askOnly(id);
    newConversation();
  },
});
onChange("health", drawModels);
byId("skip").onclick = () => byId("main").focus();
document.addEventListener("keydown", keys);
addEventListener("hashchange", () => {
  route();
  if (viewNow() === "search" && matchMedia("(hover: hover)").matches) byId("query").focus();
});
colours();
loadHealth().catch((thrown) => {
  byId("foot-line").textContent = "Folio does not answer";
  welcomeProblem(thrown);
});
refreshLibrary();
loadConversations();
route();
if (matchMedia("(hover: hover)").matches && viewNow() !== "library") byId(FIRST[viewNow()]).focus();
