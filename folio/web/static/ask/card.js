// The card of a citation in a text: its quote, and what opens its page or keeps it as a note.

import { hideCard } from "../base/card.js";
import { el, formatPage, isolate, makeButton, makeIcon } from "../base/dom.js";
import { getTitle, library } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shorten } from "../base/text.js";
import { renderNotice } from "../paper/notice.js";
import { keepNote } from "./keep.js";
import { setOrigin } from "./origin.js";

/** @typedef {import("./origin.js").Origin} Origin */
/** @typedef {import("./statement.js").CitedPage} CitedPage */

/**
 * What a card shows. open: opens the page; it gets what to focus later.
 * @param {HTMLElement} node @param {CitedPage} cited @param {Origin} origin
 * @param {(from: HTMLElement) => void} open
 */
export function renderCard(node, cited, origin, open) {
  const { answered } = origin;
  const quotes = cited.quotes.map(({ text }) => {
    const own = origin.quotes.filter(({ quote }) => quote === text);
    return setOrigin(el("p", {}, "“", isolate(joinLines(text)), "”"), { statement: "", quotes: own, answered });
  });
  const { year = cited.year } = library.get().papers.get(cited.paper) ?? {};
  const place = [year, formatPage(cited.page, cited.label), ...cited.sections].filter(Boolean).join(" · ");
  const openPage = () => {
    hideCard();
    open(node);
  };
  return [
    el("blockquote", { tabindex: "0" }, quotes),
    el("p", { class: "card-title" }, isolate(shorten(joinLines(getTitle(cited))))),
    el("p", { class: "about" }, isolate(joinLines(place))),
    ...(cited.notice ? [renderNotice(cited.notice)] : []),
    el(
      "div",
      { class: "row" },
      makeButton("button quiet", openPage, makeIcon("out"), t("ask.card.open")),
      makeButton("button quiet", () => keepNote(origin), makeIcon("note"), t("ask.note")),
    ),
  ];
}
