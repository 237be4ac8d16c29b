// A panel over the page with a heading and a button that closes it, such as for instructions.

import { el, makeIconButton } from "../base/dom.js";
import { enterPanel, leavePanel } from "../base/panels.js";
import { t } from "../base/strings.js";

/**
 * A function that opens a panel. Its content is made when it is opened first.
 * @param {string} id @param {import("../base/strings.js").Key} title @param {() => HTMLElement} make
 */
export function makePanel(id, title, make) {
  /** @type {HTMLDialogElement | null} */
  let dialog = null;
  return () => {
    if (!dialog) {
      const heading = el("h2", { id: `${id}-title` }, t(title));
      const close = makeIconButton("close", t("close"), () => dialog?.close(), "Escape");
      const head = el("div", { class: "over-head" }, heading, close);
      dialog = el("dialog", { class: "over", id, "aria-labelledby": heading.id }, head, make());
      dialog.addEventListener("close", () => dialog && leavePanel(dialog));
      document.body.append(dialog);
    }
    if (dialog.open) return;
    dialog.showModal();
    enterPanel(dialog, () => dialog?.close());
  };
}
