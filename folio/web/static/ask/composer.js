// The question form: the question, the words that it is about, the model, the instruction, and the deep search.

import { el, hideVisually, keepInTab, makeButton, makeIcon, readInTab, remember } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { health, library, options, selection, setOptions } from "../base/state.js";
import { parts, t } from "../base/strings.js";
import { note as instructionNote, picker as instructionPicker } from "./instructions.js";
import { picker } from "./models.js";
import { panel, showTags, togglePanel } from "./options.js";
import { scopeLine, setUpScopeLine } from "./scope_line.js";
import { renderSelection as renderSelectedWords } from "./sources.js";

// What is asked about selected words: the question, and whether in all papers
/** @type {[import("../base/strings.js").Key, boolean][]} */
const READY = [
  ["ask.ready.meaning", false],
  ["ask.ready.elsewhere", true],
  ["ask.ready.disagrees", true],
];

export const box = el("textarea", {
  id: "question",
  name: "question",
  rows: "1",
  maxlength: "10000",
  placeholder: t("ask.placeholder"),
  "aria-keyshortcuts": "/",
  "aria-label": t("ask.question"),
  autocomplete: "off",
});
const optionsButton = makeButton(
  "button quiet",
  (event) => {
    toggle(panel.hidden === true);
    if (!panel.hidden && !event.detail) panel.querySelector("input")?.focus(); // by keyboard: it stands before the button
  },
  makeIcon("options"),
  t("ask.options"),
);
optionsButton.id = "options-button";
optionsButton.setAttribute("aria-expanded", "false");
optionsButton.setAttribute("aria-controls", panel.id);
const deep = el("input", {
  type: "checkbox",
  role: "switch",
  id: "deep",
  "aria-describedby": "deep-note",
  autocomplete: "off",
  onchange: () => {
    remember("deep", deep.checked ? "on" : "off");
    setOptions({ deep: deep.checked });
  },
});
const deepNote = el("p", { class: "about", id: "deep-note", hidden: true }, t("ask.deep.note"));
const send = el("button", { type: "submit", class: "button primary", id: "send" }, makeIcon("send"), t("ask.send"));
const stop = makeButton("button primary", () => {}, makeIcon("stop"), t("ask.stop"));
stop.id = "stop";
stop.hidden = true;
const chosen = el("div", { class: "chosen", id: "chosen", hidden: true });
const about = el("div", { class: "chosen-words", role: "group", "aria-label": t("ask.words"), hidden: true });

export const composer = el(
  "form",
  { class: "composer", id: "composer", "aria-label": t("ask.question") },
  panel,
  chosen,
  about,
  scopeLine,
  el(
    "div",
    { class: "box" },
    box,
    el(
      "div",
      { class: "row" },
      optionsButton,
      picker,
      instructionPicker,
      el("label", { class: "switch", title: t("ask.deep.note") }, deep, t("ask.deep")),
      el(
        "span",
        { class: "hint", "aria-hidden": "true" },
        parts("ask.hint", { enter: key("Enter"), line: key("Shift+Enter") }),
      ),
      send,
      stop,
    ),
    deepNote,
    instructionNote,
  ),
);

const draft = new Draft(composer);
/** @type {object | null} the conversation whose question is in the box */
let shown = null;

/**
 * Shows the question that is being written in a conversation. A new one gets its id once it is asked something.
 * @param {{id: string}} conversation
 */
export function showQuestion(conversation) {
  if (shown === conversation) draft.move(`question ${conversation.id}`);
  else draft.open(`question ${conversation.id}`);
  shown = conversation;
  resize();
}

/** The conversation is gone: what is being written in it goes on in a new one. */
export const keepQuestion = () => void draft.move("question ");

/** @param {string} name */
function key(name) {
  return el("kbd", {}, name);
}

/** @param {boolean} open */
function toggle(open) {
  togglePanel(open);
  if (open) panel.scrollIntoView({ block: "nearest" });
  optionsButton.setAttribute("aria-expanded", String(open));
}

/** Hides the options, as when a question is sent. */
const closeOptions = () => toggle(false);

function resize() {
  box.style.setProperty("height", "auto");
  box.style.setProperty("height", `${box.scrollHeight}px`);
}

// Milliseconds after which Stop can be clicked: the second click on Ask meets the button that has taken its place
const STOP_AFTER_MS = 500;
let asked = 0; // when Stop was shown

/** Shows whether an answer is being made. @param {boolean} isRunning */
export function showRunning(isRunning) {
  if (isRunning && stop.hidden) asked = performance.now();
  send.hidden = isRunning;
  stop.hidden = !isRunning;
}

/** Shows the words that the next question is about, with questions about them. */
/** @param {(message: string, isEverywhere: boolean) => void} ask */
function renderSelection(ask) {
  const now = selection.get();
  about.hidden = !now;
  if (!now) return about.replaceChildren();
  const clear = () => {
    selection.set(null);
    box.focus();
  };
  const remove = makeButton("button bare", clear, makeIcon("close"), hideVisually(t("ask.words.remove")));
  const ready = READY.map(([text, isEverywhere]) =>
    makeButton("button suggestion", () => ask(t(text), isEverywhere), t(text)),
  );
  about.replaceChildren(
    el("div", { class: "tag" }, el("p", { class: "tag-name" }, renderSelectedWords(now)), remove),
    el("div", { class: "ready-questions" }, ready),
  );
}

/**
 * @param {object} actions
 * @param {(message: string, isEverywhere: boolean) => boolean} actions.ask returns whether the box may be emptied
 * @param {() => void} actions.stop
 * @param {() => void} actions.show shows the view, as words were selected beside another one
 */
export function setUpComposer(actions) {
  const submit = (/** @type {Event | undefined} */ event) => {
    event?.preventDefault();
    const message = box.value.trim();
    const wrong = /** @type {HTMLElement | null} */ (panel.querySelector("[aria-invalid='true']"));
    if (wrong && message) {
      toggle(true); // what is asked would not be what was entered
      return wrong.focus();
    }
    if (!message || !actions.ask(message, false)) return;
    box.value = "";
    draft.forget();
    resize();
    closeOptions();
  };
  composer.addEventListener("submit", submit);
  composer.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || panel.hidden) return;
    event.stopPropagation(); // so that the open page of a paper stays open
    if (panel.contains(document.activeElement)) optionsButton.focus();
    toggle(false);
  });
  box.addEventListener("input", resize);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) submit(event);
  });
  stop.onclick = (event) => {
    if (event.detail > 1 && performance.now() - asked < STOP_AFTER_MS) return;
    actions.stop();
    box.focus();
  };
  showTags(chosen, box);
  setUpScopeLine(box);
  const render = () => renderSelection(actions.ask);
  selection.set(readInTab("selection"));
  render();
  selection.onChange((now) => {
    keepInTab("selection", now);
    render();
    if (!now) return;
    actions.show();
    box.focus();
  });
  library.onChange(({ papers }) => {
    const words = selection.get();
    if (words && papers.size && !papers.has(words.paper))
      selection.set(null); // its paper was removed
    else render();
  });
  options.watch((now) => {
    deep.checked = now.deep;
    deepNote.hidden = !now.deep;
  });
  health.onChange((now) => {
    box.disabled = send.disabled = now?.status === "empty";
  });
}
