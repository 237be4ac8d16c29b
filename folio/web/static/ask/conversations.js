// The list of earlier conversations.

import * as api from "../base/api.js";
import { place } from "../base/router.js";
import { byId, confirmAction, el, formatCount, formatDate, hideVisually } from "../base/dom.js";
import { isolate, makeButton, makeIcon, renderProblem, showToast } from "../base/dom.js";

let onDeleted = () => {};

/** Loads the list and renders it. Never throws. */
export async function loadConversations() {
  const box = byId("conversations");
  try {
    const { conversations } = await api.listConversations();
    const none = el("p", { class: "none" }, "No conversations yet.");
    box.replaceChildren(conversations.length ? renderList(conversations) : none);
    markCurrent();
  } catch (thrown) {
    box.replaceChildren(renderProblem(api.toApiError(thrown), loadConversations));
  }
}

/** Marks the conversation that the address names. */
export function markCurrent() {
  for (const link of byId("conversations").querySelectorAll("a")) {
    if (link.dataset.id === place.get().id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function renderList(conversations) {
  return el(
    "ul",
    {},
    conversations.map(({ id, title, updated, turns }) =>
      el(
        "li",
        {},
        el(
          "a",
          { href: `./#c/${id}`, "data-id": id, onclick: closeSide },
          isolate(title, { class: "title" }),
          el("span", { class: "about" }, `${formatDate(updated)} · ${formatCount(turns, "question")}`),
        ),
        makeButton(
          "button bare",
          () => deleteConversation(id, title),
          makeIcon("delete"),
          hideVisually(`Delete “${title}”`),
        ),
      ),
    ),
  );
}

/** On a narrow screen the list covers the page, so it closes once a conversation is chosen. */
function closeSide() {
  const side = byId("side");
  if (side.matches(":popover-open")) side.hidePopover();
}

async function deleteConversation(id, title) {
  const text = el("span", {}, "“", isolate(title), "” and its answers will be deleted. Your papers stay.");
  if (!(await confirmAction("Delete this conversation?", text, "Delete"))) return;
  try {
    await api.deleteConversation(id);
  } catch (thrown) {
    const error = api.toApiError(thrown);
    showToast(`${error.error} ${error.remedy}`);
  }
  await loadConversations();
  onDeleted(id);
}

/** callback: called with the id of a deleted conversation. */
export function setUpSide(callback) {
  onDeleted = callback;
}
