// The page as a whole: it starts the views, tells them of each other, and follows what changes on the server.

import { askAboutSelection, askPaper, getCurrentId, newConversation, noteOpened } from "./ask/chat.js";
import { setUpChat, showConversation, showStartError } from "./ask/chat.js";
import { loadConversations, setUpSide } from "./ask/conversations.js";
import { setUpInstructions } from "./ask/instructions.js";
import { isPermanent, toApiError } from "./base/api.js";
import { byId, fillTexts } from "./base/dom.js";
import { followEvents, onEvent } from "./base/events.js";
import { atMostEvery } from "./base/pace.js";
import { enterPanel, leavePanel } from "./base/panels.js";
import { goTo, place } from "./base/router.js";
import { keepPlace } from "./base/scrolling.js";
import { getProjectName, loadHealth, loadProjects, projects, setOptions } from "./base/state.js";
import { t } from "./base/strings.js";
import { getLastChange, undo, undoByKey } from "./base/undo.js";
import { setUpFind } from "./find/find.js";
import { renderWork, setUpWorks } from "./find/works.js";
import { refreshLibrary, setUpLibrary } from "./library/library.js";
import { setUpNotes } from "./notes/notes.js";
import { Palette } from "./palette/palette.js";
import { setUpPaper } from "./paper/paper.js";
import { closeReader, isReaderOpen, refreshNotes, setUpReader } from "./reader/reader.js";
import { setUpReview } from "./review/review.js";
import { setUpProjectList, setUpProjects } from "./projects/projects.js";
import { setUpSearch } from "./search/search.js";
import { InstructionSettings } from "./settings/instructions.js";
import { setUpSettings } from "./settings/settings.js";
import { stepThroughCitations } from "./shell/citation_steps.js";
import { bindKeys, setUpKeys, showKeys } from "./shell/keys.js";
import { formatShortcut } from "./shell/match_keys.js";
import { setUpModels } from "./shell/models.js";
import { OwnQuestions } from "./settings/own_questions.js";
import { makePanel } from "./shell/panel.js";
import { setUpTheme, toggleTheme } from "./shell/theme.js";
import { focusField, focusTyped, followLink, listLinked, registerView, renderNav, showView } from "./shell/views.js";
import { setUpTables } from "./table/tables.js";

const LOAD_MS = 2000; // between two loads of the papers: an ingest adds many in a second
const AGAIN_MS = 5000; // after a load that failed, though the server tells its changes

const nav = byId("views");
const ownQuestions = new OwnQuestions();
const openOwnQuestions = makePanel("own-questions", "own.title", () => ownQuestions.node);
const showInstructions = makePanel("instructions", "instructions.title", () => new InstructionSettings().node);

/** Restricts questions to papers. @param {...string} papers */
function ask(...papers) {
  newConversation();
  setOptions({ papers, filters: {} });
}

/** Asks the papers of a project, in a new conversation. @param {string} project its id */
function askProject(project) {
  newConversation();
  setOptions({ papers: [], filters: { project } });
}

function showOwnQuestions() {
  openOwnQuestions();
  ownQuestions.load();
}

function setUpViews() {
  const section = (/** @type {string} */ name) => byId(`view-${name}`);
  registerView({ name: "ask", text: "view.ask", section: section("ask"), hasTitle: true, isTyped: true });
  registerView({ name: "search", text: "search", section: section("search"), isTyped: true });
  registerView({ name: "library", text: "library", section: section("library") });
  registerView({ name: "find", text: "view.find.title", section: section("find"), isTyped: true });
  registerView({ name: "notes", text: "notes", section: section("notes") });
  registerView({ name: "projects", text: "projects", section: section("projects"), under: "library" });
  registerView({ name: "settings", text: "settings", section: section("settings"), under: "settings" }); // no link among them
  registerView({ name: "tables", text: "tables", section: section("tables"), hasTitle: true });
  registerView({ name: "paper", text: "paper", section: section("paper"), under: "library", hasTitle: true });
  registerView({ name: "review", text: "review", section: section("review"), under: "library", hasTitle: true });
  renderNav(nav);
  setUpReader({ ask: (_, question) => askAboutSelection(question), askPaper, opened: noteOpened });
  setUpSearch(section("search"), byId("to-search"));
  setUpChat(section("ask"), byId("to-ask"));
  setUpInstructions(showInstructions);
  setUpWorks({ ask, added: refreshLibrary });
  setUpFind(section("find"));
  setUpSide(byId("side"), {
    create: newConversation,
    deleted: (id) => {
      if (id === getCurrentId()) newConversation();
    },
  });
  const { create } = setUpTables(section("tables"));
  setUpLibrary(section("library"), { bar: byId("adding"), ask, makeTable: create });
  setUpPaper(section("paper"), { ask, askPaper, renderWork });
  setUpNotes(section("notes"));
  setUpReview(section("review"));
  setUpProjects(section("projects"), { ask: askProject });
  setUpProjectList(byId("side"));
  setUpSettings(section("settings"), { line: byId("task-line"), link: byId("to-settings") });
}

function route() {
  showView(nav);
  const { view, id } = place.get();
  if (view === "ask") showConversation(id || null);
}

/** @param {import("./shell/views.js").View} view */
const openView = ({ name }) => {
  followLink(byId(`to-${name}`, HTMLAnchorElement));
  byId("main").focus();
};

/** @returns {import("./palette/palette.js").Command[]} */
const listCommands = () => [
  { text: t("command.new"), run: newConversation },
  ...[getLastChange()].flatMap((last) =>
    last ? [{ text: t("command.undo", { what: last.text }), keys: "Mod+Z", run: undo }] : [],
  ),
  ...listLinked().map((view, at) => ({
    text: t("command.show", { name: t(view.text) }),
    keys: `Alt+${at + 1}`,
    run: () => openView(view),
  })),
  { text: t("command.show", { name: t("projects") }), run: () => goTo({ view: "projects", id: "", query: {} }) },
  ...[...(projects.get()?.keys() ?? [])].map((project) => ({
    text: t("project.is", { name: getProjectName(project) }),
    run: () => goTo({ view: "projects", id: "", query: { project } }),
  })),
  { text: t("settings"), run: () => goTo({ view: "settings", id: "", query: {} }) },
  { text: t("command.theme"), run: toggleTheme },
  { text: t("command.models"), run: () => byId("models").showPopover() },
  { text: t("instructions.manage"), run: showInstructions },
  { text: t("own.title"), run: showOwnQuestions },
  { text: t("command.keys"), keys: "?", run: showKeys },
];

/** The keys of the page. The views and the reader handle theirs, as they depend on what has the focus. */
function setUpShortcuts() {
  const palette = new Palette(listCommands);
  byId("find-anything").onclick = () => palette.open();
  byId("find-anything").setAttribute("aria-keyshortcuts", formatShortcut("Mod+K"));
  byId("find-anything").title = t("palette");
  const closeOpenReader = () => {
    if (!isReaderOpen() || document.querySelector(":popover-open")) return false;
    closeReader();
    return true;
  };
  bindKeys([
    { keys: "Mod+K", text: "key.palette", run: () => palette.toggle() },
    { keys: "Mod+Z", text: "key.undo", run: undoByKey },
    { keys: "?", text: "key.keys", run: showKeys },
    { keys: "/", text: "key.field", run: focusField },
    ...listLinked().map((view, at) => ({
      keys: `Alt+${at + 1}`,
      text: /** @type {const} */ ("key.view"),
      values: { name: t(view.text) },
      run: () => openView(view),
    })),
    { keys: "Escape", text: "key.close", run: closeOpenReader },
    { keys: "n", text: "key.next", group: "keys.answer", run: () => stepThroughCitations(byId("view-ask"), 1) },
    { keys: "p", text: "key.previous", group: "keys.answer", run: () => stepThroughCitations(byId("view-ask"), -1) },
    { keys: "j ArrowDown", text: "key.row.next", group: "keys.library" },
    { keys: "k ArrowUp", text: "key.row.previous", group: "keys.library" },
    { keys: "x", text: "key.row.select", group: "keys.library" },
    { keys: "t", text: "key.row.tags", group: "keys.library" },
    { keys: "Enter", text: "key.row.open", group: "keys.library" },
    { keys: "ArrowUp ArrowDown ArrowLeft ArrowRight", text: "key.cell", group: "keys.table" },
    { keys: "Home End", text: "key.cell.ends", group: "keys.table" },
    { keys: "Enter", text: "key.cell.open", group: "keys.table" },
    { keys: "ArrowLeft ArrowRight", text: "key.page", group: "keys.reader" },
    { keys: "- +", text: "key.zoom", group: "keys.reader" },
    { keys: "Mod+F", text: "key.find", group: "keys.reader" },
    { keys: "s", text: "key.select", group: "keys.reader" },
  ]);
  setUpKeys();
}

/** Shows what this page, another tab or a terminal changes. */
function followChanges() {
  const load = atMostEvery(LOAD_MS, () => {
    refreshLibrary({ ifChanged: true });
    loadHealth().catch((thrown) => isPermanent(toApiError(thrown)) || setTimeout(load, AGAIN_MS));
  });
  for (const kind of /** @type {const} */ (["hello", "papers", "failures"])) onEvent(kind, load);
  for (const kind of /** @type {const} */ (["hello", "notes"])) onEvent(kind, () => refreshNotes());
  const reload = atMostEvery(LOAD_MS, () => loadProjects().catch(() => {})); // its view says why
  for (const kind of /** @type {const} */ (["hello", "papers", "projects"])) onEvent(kind, reload);
  onEvent("away", () => {
    byId("foot-line").textContent = t("shell.away");
  });
  followEvents();
}

/** On a narrow screen, Back closes the panel that covers the page. */
function setUpPopovers() {
  const narrow = matchMedia("(max-width: 1199px), (max-height: 499px)");
  for (const node of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[popover]"))) {
    node.addEventListener("beforetoggle", (event) => {
      if (/** @type {ToggleEvent} */ (event).newState === "closed") leavePanel(node);
      else if (narrow.matches) enterPanel(node, () => node.hidePopover());
    });
  }
}

async function load() {
  refreshLibrary();
  loadConversations();
  loadProjects().catch(() => {});
  try {
    await loadHealth();
  } catch (thrown) {
    byId("foot-line").textContent = t("shell.away");
    showStartError(thrown);
  }
}

fillTexts(document);
byId("own-questions-button").onclick = showOwnQuestions;
setUpViews();
setUpModels({ line: byId("foot-line"), button: byId("models-button"), text: byId("models-text") });
setUpTheme(byId("theme"));
setUpPopovers();
setUpShortcuts();
keepPlace();
byId("skip").onclick = () => byId("main").focus();
place.onChange(({ view, id }, before) => {
  if (view === before.view && id === before.id) return; // a page was turned in the reader, or words were typed
  route();
  if (view !== before.view) focusTyped();
});
followChanges();
load();
route();
focusTyped();
