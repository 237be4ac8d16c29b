// The list of earlier conversations: in groups by age, searched, renamed, pinned and deleted.

import * as api from "../base/api.js";
import { el, formatDate, hideVisually, isolate, makeButton, makeIcon } from "../base/dom.js";
import { renderProblem } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { onEvent } from "../base/events.js";
import { WindowedList } from "../base/list.js";
import { place } from "../base/router.js";
import { health, options } from "../base/state.js";
import { t } from "../base/strings.js";
import { shortenAtWord } from "../base/text.js";
import { offerUndo } from "../base/undo.js";
import { linkToConversation } from "./address.js";
import { showFailure } from "../base/failure.js";
import { groupByAge } from "./groups.js";
import { addMenu } from "../base/menu.js";
import { addToProject } from "../projects/add_to_project.js";

/** @typedef {Api.ConversationSummary} Summary */

const TYPING_MS = 200; // after which the words that are typed are searched
const MOST_RENDERED = 150; // conversations of a group; of a longer one, only those in view have elements
const LONGEST_NAME = 60; // characters of a title, where a message names it
const HEIGHT = 62; // pixels of a conversation with a title of one line, until it is measured
/** @type {Record<import("./groups.js").Group, import("../base/strings.js").Key>} */
const GROUPS = {
  pinned: "ask.list.pinned",
  today: "ask.list.today",
  week: "ask.list.week",
  earlier: "ask.list.earlier",
};

const filter = el("input", {
  type: "search",
  id: "conversation-filter",
  maxlength: "500",
  placeholder: t("ask.list.find"),
  "aria-label": t("ask.list.find"),
  autocomplete: "off",
});
const box = el("div", { id: "conversations" });
const status = el("p", { class: "unseen", role: "status" });
const unlogged = el("p", { class: "none", hidden: true }, t("ask.list.unlogged"));
let side = /** @type {HTMLElement} */ (box);
/** @type {(id: string) => void} */
let onDeleted = () => {};
let loads = 0; // a later one makes an earlier one void
let isStale = false; // the list is to be loaded once its menu is closed
/** @type {Map<string, WindowedList<Summary>>} the long groups, by their names */
const windows = new Map();
/** @type {string} the conversation whose title is being changed */
let renamed = "";

/** Whether a person renames a conversation or has its menu open, which then stay. */
const isInUse = () => renamed !== "" || box.querySelector(":popover-open") !== null;

/** Loads the list and renders it. Never throws. */
export async function loadConversations() {
  loads += 1;
  const load = loads;
  const query = filter.value.trim();
  try {
    const { conversations } = await api.listConversations(query);
    if (load !== loads) return;
    isStale = isInUse();
    if (!isStale) render(conversations, query);
  } catch (thrown) {
    if (load !== loads) return;
    isStale = isInUse();
    if (!isStale) box.replaceChildren(renderProblem(api.toApiError(thrown), loadConversations));
  }
}

/** @param {Summary[]} conversations @param {string} query */
function render(conversations, query) {
  filter.hidden = !conversations.length && !query;
  status.textContent = query ? t("ask.list.count", { count: conversations.length }) : "";
  const focused = findFocus();
  if (!conversations.length) {
    box.replaceChildren(el("p", { class: "none" }, t(query ? "ask.list.nothing" : "ask.list.none")));
    return;
  }
  box.replaceChildren(
    ...groupByAge(conversations, new Date()).map(([group, items]) => renderGroup(t(GROUPS[group]), items)),
  );
  focused?.();
}

/** What focuses the same control of the same conversation again; null if none has the focus. */
function findFocus() {
  const active = document.activeElement;
  const item = active?.closest("#conversations li");
  if (!(item instanceof HTMLElement) || !active) return null;
  const { id } = item.dataset;
  const selector = active.matches("a") ? "a" : "button";
  return () => {
    const again = box.querySelector(`li[data-id="${CSS.escape(id ?? "")}"] ${selector}`);
    if (again instanceof HTMLElement) again.focus({ preventScroll: true });
  };
}

/** @param {string} name @param {Summary[]} items */
function renderGroup(name, items) {
  let list = el("ul", { "aria-label": name });
  if (items.length <= MOST_RENDERED) list.append(...items.map(renderItem));
  else {
    const windowed = windows.get(name) ?? makeWindow(list);
    windows.set(name, windowed);
    list = /** @type {HTMLUListElement} */ (windowed.options.root);
    queueMicrotask(() => windowed.setItems(items)); // once the list is in the page
  }
  return el("section", { class: "group" }, el("h2", {}, name), list);
}

/** @param {HTMLElement} root */
const makeWindow = (root) =>
  new WindowedList({
    scroller: side,
    root,
    key: (/** @type {Summary} */ { id }) => id,
    render: renderItem,
    height: () => HEIGHT,
    isMeasured: true,
  });

/** @param {Summary} conversation */
function renderItem(conversation) {
  const { id, title, updated, turns, pinned } = conversation;
  const link = el(
    "a",
    { href: linkToConversation(id), onclick: closeSide },
    isolate(title, { class: "title" }),
    el("span", { class: "about" }, `${formatDate(updated)} · ${t("ask.questions", { count: turns })}`),
  );
  if (id === place.get().id) link.setAttribute("aria-current", "page");
  const item = el("li", { "data-id": id }, link);
  const more = makeButton("button bare", () => {}, makeIcon("more"), hideVisually(t("ask.list.more", { title })));
  const menu = addMenu(more, t("ask.list.menu"), (close) => {
    /** @param {string} icon @param {string} name @param {() => void} act */
    const choice = (icon, name, act) =>
      makeButton(
        "button quiet",
        () => {
          close();
          act();
        },
        makeIcon(icon),
        name,
      );
    return [
      choice("edit", t("ask.list.rename"), () => rename(conversation, item)),
      choice("pin", t(pinned ? "ask.list.unpin" : "ask.list.pin"), () => change(id, { pinned: !pinned })),
      choice("plus", t("project.add"), () => addToProject(t("project.add.conversation"), { conversations: [id] })),
      choice("delete", t("ask.list.delete"), () => remove(id, title)),
    ];
  });
  item.append(...menu);
  return item;
}

/** Marks the conversation that the address names. */
export function markCurrent() {
  for (const item of box.querySelectorAll("li")) {
    const link = item.querySelector("a");
    if (item.dataset.id === place.get().id) link?.setAttribute("aria-current", "page");
    else link?.removeAttribute("aria-current");
  }
}

/** The links search as the next question does. */
function updateLinks() {
  for (const item of box.querySelectorAll("li")) {
    item.querySelector("a")?.setAttribute("href", linkToConversation(item.dataset.id ?? ""));
  }
}

/** On a narrow screen the list covers the page, so it closes once a conversation is chosen. */
function closeSide() {
  if (side.matches(":popover-open")) side.hidePopover();
}

/**
 * Returns whether it was changed.
 * @param {string} id @param {Partial<Api.ConversationChanges>} changes @param {string} [undo] a key
 */
async function change(id, changes, undo) {
  const isChanged = await api.changeConversation(id, changes, undo).then(() => true, showFailure);
  await loadConversations();
  const button = box.querySelector(`li[data-id="${CSS.escape(id)}"] button`);
  if (button instanceof HTMLElement && document.activeElement === document.body) button.focus();
  return isChanged === true;
}

/** Lets the person change the title in its place. @param {Summary} conversation @param {HTMLElement} item */
function rename({ id, title }, item) {
  const label = t("ask.list.title");
  const field = el("input", { type: "text", name: "title", maxlength: "200", "aria-label": label, value: title });
  const form = el("form", { class: "rename" }, field);
  const draft = new Draft(form);
  draft.open(`name ${id}`);
  const before = [...item.childNodes];
  renamed = id;
  const save = async (/** @type {string} */ name) => {
    const key = api.makeKey();
    if (!(await change(id, { title: name }, key))) return;
    draft.forget();
    offerUndo(t("ask.list.renamed"), key);
  };
  /** @param {boolean} isKept */
  const end = (isKept) => {
    if (renamed !== id) return;
    renamed = "";
    const name = field.value.trim();
    item.replaceChildren(...before);
    item.querySelector("button")?.focus();
    if (isKept && name && name !== title) save(name);
    else {
      loadConversations();
      if (isKept) draft.forget();
    }
  };
  field.addEventListener("keydown", (event) => {
    if (!["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault(); // else Enter would press the button that gets the focus, and Escape close the list
    event.stopPropagation();
    end(event.key === "Enter");
  });
  field.addEventListener("blur", () => end(true));
  item.replaceChildren(form);
  field.focus();
  field.select();
}

/** @param {string} id @param {string} title */
async function remove(id, title) {
  const { view, id: shown, query } = place.get();
  const key = api.makeKey();
  try {
    await api.deleteConversation(id, key);
    onDeleted(id);
    const name = shortenAtWord(title, LONGEST_NAME);
    offerUndo(t("ask.list.deleted", { title: name }), key, view === "ask" && shown === id ? { view, id, query } : null);
  } catch (thrown) {
    showFailure(thrown);
  }
  await loadConversations();
}

/**
 * Builds the list.
 * @param {HTMLElement} root
 * @param {{create: () => void, deleted: (id: string) => void}} actions create: a new conversation
 */
export function setUpSide(root, { create, deleted }) {
  side = root;
  onDeleted = deleted;
  root.setAttribute("aria-label", t("ask.list"));
  const start = () => {
    closeSide();
    create();
  };
  const button = makeButton("button wide", start, makeIcon("plus"), t("ask.new"));
  button.id = "new";
  root.append(button, filter, status, unlogged, box);
  /** @type {number | undefined} */
  let timer;
  filter.hidden = true;
  filter.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(loadConversations, TYPING_MS);
  });
  options.onChange(updateLinks);
  health.onChange((now) => {
    unlogged.hidden = now?.logged !== false;
  });
  place.onChange(markCurrent);
  const update = () => {
    if (isStale && !box.querySelector(":popover-open")) loadConversations();
  };
  box.addEventListener("toggle", update, { capture: true });
  onEvent("conversations", loadConversations);
  onEvent("hello", loadConversations);
}
