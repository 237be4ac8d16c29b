// Choosing a folder of this computer, in a dialog that walks through its folders.

import * as api from "../base/api.js";
import { el, isolate, makeButton, makeIcon, renderProblem } from "../base/dom.js";
import { enterPanel, leavePanel } from "../base/panels.js";
import { t } from "../base/strings.js";

/** Asks for a folder. Resolves to its path; "" if none was chosen. @param {string} title @param {string} [start] */
export function chooseFolder(title, start = "") {
  return new Promise((/** @type {(path: string) => void} */ resolve) => {
    const chooser = new FolderChooser(title, resolve);
    chooser.open(start);
  });
}

class FolderChooser {
  #chosen = "";

  /** @param {string} title @param {(path: string) => void} done */
  constructor(title, done) {
    this.heading = el("h2", { id: "chooser-title" }, title);
    this.path = el("input", {
      type: "text",
      id: "chooser-path",
      "aria-label": t("settings.folder.path"),
      autocomplete: "off",
      spellcheck: "false",
      maxlength: "4096",
    });
    this.places = el("div", { class: "row chooser-places" });
    this.list = el("ul", { class: "chooser-folders", "aria-label": t("settings.folder.inside") });
    this.count = el("p", { class: "about", role: "status" });
    this.problem = el("div");
    this.use = makeButton("button primary", () => this.#close(this.path.value), t("settings.folder.use"));
    const cancel = makeButton("button", () => this.#close(""), t("cancel"));
    const go = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.show(this.path.value.trim());
    };
    const show = el("button", { type: "submit", class: "button" }, t("settings.folder.open"));
    const form = el("form", { class: "row chooser-form", onsubmit: go }, this.path, show);
    this.dialog = el(
      "dialog",
      { class: "chooser", "aria-labelledby": this.heading.id },
      this.heading,
      this.places,
      form,
      this.problem,
      this.list,
      this.count,
      el("div", { class: "row chooser-end" }, cancel, this.use),
    );
    this.dialog.onclose = () => {
      leavePanel(this.dialog);
      this.dialog.remove();
      done(this.#chosen);
    };
  }

  /** @param {string} start */
  open(start) {
    document.body.append(this.dialog);
    this.dialog.showModal();
    enterPanel(this.dialog, () => this.dialog.close());
    this.show(start);
  }

  /** @param {string} path */
  #close(path) {
    this.#chosen = path;
    this.dialog.close();
  }

  /** Lists the folders of a folder. @param {string} path */
  async show(path) {
    this.problem.replaceChildren();
    this.use.disabled = true;
    try {
      this.#render(await api.listFolders(path));
    } catch (thrown) {
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown)));
    }
  }

  /** @param {Api.FolderListing} listing */
  #render({ path, parent, folders, is_cut, pdfs, is_more, places }) {
    const hadFocus = this.list.contains(document.activeElement);
    this.path.value = path;
    this.use.disabled = false;
    const open = (/** @type {string} */ name, /** @type {string} */ to, /** @type {string} */ icon) =>
      makeButton("button quiet", () => this.show(to), makeIcon(icon), isolate(name));
    this.places.replaceChildren(...places.map((place) => open(place.name, place.path, "folder")));
    const up = parent ? [el("li", {}, open(t("settings.folder.up"), parent, "previous"))] : [];
    const cut = is_cut ? [el("li", { class: "none" }, t("settings.folder.cut"))] : [];
    this.list.replaceChildren(
      ...up,
      ...folders.map((folder) => el("li", {}, open(folder.name, folder.path, "folder"))),
      ...cut,
    );
    this.list.scrollTop = 0;
    const counted = t("settings.folder.pdfs", { count: pdfs });
    this.count.textContent = is_more ? t("settings.folder.more", { pdfs: counted }) : counted;
    if (hadFocus) (this.list.querySelector("button") ?? this.path).focus();
  }
}
