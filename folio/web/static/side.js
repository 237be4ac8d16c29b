// The list of earlier conversations.

import * as api from "./api.js";
import { button, byId, confirmed, count, el, icon, problem, toast, unseen, when, words } from "./dom.js";

let whenDeleted = () => {};

/** Asks the server for the list and draws it. Never raises. */
export async function loadConversations() {
  const box = byId("conversations");
  try {
    const { conversations } = await api.conversations();
    const none = el("p", { class: "none" }, "Conversations will be listed here.");
    box.replaceChildren(conversations.length ? list(conversations) : none);
    markCurrent();
  } catch (thrown) {
    box.replaceChildren(problem(api.shown(thrown), loadConversations));
  }
}

/** Marks the one that the address names. */
export function markCurrent() {
  for (const link of byId("conversations").querySelectorAll("a")) {
    if (link.hash === location.hash) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function list(conversations) {
  return el(
    "ul",
    {},
    conversations.map(({ id, title, updated, turns }) =>
      el(
        "li",
        {},
        el(
          "a",
          { href: `./#c/${id}`, onclick: put },
          words(title, { class: "title" }),
          el("span", { class: "about" }, `${when(updated)} · ${count(turns, "question")}`),
        ),
        button("button bare", () => remove(id, title), icon("delete"), unseen(`Delete “${title}”`)),
      ),
    ),
  );
}

/** On a narrow screen the list lies over the page, and has done its work. */
function put() {
  const side = byId("side");
  if (side.matches(":popover-open")) side.hidePopover();
}

async function remove(id, title) {
  const text = el("span", {}, "“", words(title), "” with its answers. The papers stay as they are.");
  if (!(await confirmed("Delete this conversation?", text, "Delete"))) return;
  try {
    await api.deleteConversation(id);
  } catch (thrown) {
    const error = api.shown(thrown);
    toast(`${error.error} ${error.remedy}`);
  }
  await loadConversations();
  whenDeleted(id);
}

/** deleted: told the id of a conversation that is gone. */
export function setUpSide(deleted) {
  whenDeleted = deleted;
}
