// A notice about a paper, such as its retraction.

import { el, isolate, makeIcon } from "../base/dom.js";

/** The notice as a line with a sign, with a link to where it was published. @param {Api.NoticeJson} notice */
export function renderNotice({ mark, text, link }) {
  const isWeb = /^https?:\/\//.test(link);
  const words = isolate(text);
  const shown = isWeb ? el("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, words) : words;
  return el("p", { class: mark ? "flag" : "flag mild" }, makeIcon("warning"), shown);
}
