// The settings: models, where papers come from, the index, what leaves this computer, what is kept on it.

import { toApiError } from "../base/api.js";
import { el, renderProblem } from "../base/dom.js";
import { onEvent } from "../base/events.js";
import { place } from "../base/router.js";
import { health, loadHealth } from "../base/state.js";
import { parts, t } from "../base/strings.js";
import { BibliographyPart } from "./bibliography.js";
import { InternetPart, LogPart, StoragePart } from "./data.js";
import { FoldersPart, IndexPart, ZoteroPart } from "./folders.js";
import { ModelsPart } from "./models.js";
import { loadSettings, settings } from "./state.js";
import { makeTaskList, onTaskEnd, setUpTasks } from "./tasks.js";

/** @type {SettingsView | null} */
let view = null;

/** @param {HTMLElement} root @param {{line: HTMLElement, link: HTMLElement}} elements of the page as a whole */
export function setUpSettings(root, { line, link }) {
  setUpTasks(line);
  view = new SettingsView(root);
  place.watch(({ view: name }) => {
    if (name === "settings") link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (name === "settings") view?.show();
  });
}

class SettingsView {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.models = new ModelsPart();
    this.folders = new FoldersPart();
    this.zotero = new ZoteroPart();
    this.index = new IndexPart();
    this.bibliography = new BibliographyPart();
    this.internet = new InternetPart();
    this.storage = new StoragePart();
    this.log = new LogPart();
    const all = [this.models, this.folders, this.zotero, this.index, this.bibliography, this.internet, this.storage];
    const nodes = [...all.map(({ node }) => node), this.log.node];
    this.parts = el("div", { class: "parts" }, ...nodes);
    this.problem = el("div", { class: "settings-problem" });
    this.lead = el("p", { class: "lead" });
    this.contents = el(
      "nav",
      { class: "part-links", "aria-label": t("settings.parts") },
      nodes.map((node) => {
        const heading = /** @type {HTMLElement} */ (node.querySelector("h2"));
        const go = (/** @type {Event} */ event) => {
          event.preventDefault();
          heading.scrollIntoView({ block: "start" });
          heading.focus({ preventScroll: true });
        };
        return el("a", { href: "#settings", onclick: go }, heading.textContent);
      }),
    );
    const reading = el("div", { class: "reading wide" }, el("h1", {}, t("settings")), this.lead, this.contents);
    reading.append(this.problem, makeTaskList(), this.parts);
    root.append(el("div", { class: "scroll", tabindex: "-1" }, reading));
    settings.watch((now) => this.#render(now));
    onTaskEnd(() => {
      loadHealth().catch(() => {});
      if (place.get().view === "settings") this.#load();
    });
    onEvent("hello", () => {
      if (place.get().view === "settings") this.#load();
    });
  }

  /** @param {Api.SettingsJson | null} now */
  #render(now) {
    this.parts.hidden = !now?.changeable;
    this.contents.hidden = this.parts.hidden;
    if (!now) return;
    if (now.changeable) this.lead.replaceChildren(...parts("settings.lead", { file: el("code", {}, now.file || "-") }));
    else this.lead.replaceChildren(t("settings.not_yours"));
  }

  async #load() {
    this.problem.replaceChildren();
    try {
      await Promise.all([loadSettings(), health.get() ? null : loadHealth()]);
    } catch (thrown) {
      this.problem.replaceChildren(renderProblem(toApiError(thrown), () => this.#load()));
    }
  }

  async show() {
    await this.#load();
    if (!settings.get()?.changeable) return;
    for (const part of [this.models, this.zotero, this.storage, this.log]) part.refresh();
  }
}
