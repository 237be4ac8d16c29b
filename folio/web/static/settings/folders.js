// Where papers come from: the folder for added ones, folders that are followed, Zotero, and the index made of them.

import * as api from "../base/api.js";
import {
  confirmAction,
  el,
  formatCommands,
  hideVisually,
  isolate,
  makeButton,
  makeIcon,
  renderProblem,
} from "../base/dom.js";
import { health } from "../base/state.js";
import { t } from "../base/strings.js";
import { Value } from "../base/value.js";
import { chooseFolder } from "./chooser.js";
import { makeChoice, makePart } from "./part.js";
import { formatBytes } from "./sizes.js";
import { changeSettings, isGiven, rebuild, settings, readSetting } from "./state.js";
import { onTaskEnd } from "./tasks.js";

/** @type {Value<Api.ZoteroJson | null>} */
export const zotero = new Value(/** @type {Api.ZoteroJson | null} */ (null));

export const loadZotero = async () => zotero.set(await api.getZotero());

const ZOTERO = "zotero"; // as WATCH names it

/** What separates the folders of WATCH, as in the PATH of the server's system. */
const getSeparator = () => (/^[A-Za-z]:\\/.test(readSetting("PAPERS_DIR")) ? ";" : ":");

/** What is followed: folders, and "zotero". */
const listFollowed = () => readSetting("WATCH").split(getSeparator()).filter(Boolean);

/** @param {string[]} followed */
const follow = (followed) => changeSettings({ WATCH: followed.join(getSeparator()) || null });

/** Reads a folder, and keeps the index in step with it. Throws ApiError. */
export async function addFolder() {
  const path = await chooseFolder(t("settings.folder.add"));
  if (path && !listFollowed().includes(path)) await follow([...listFollowed(), path]);
  return Boolean(path);
}

/** Follows Zotero, or no longer. Throws ApiError. @param {boolean} isFollowed */
export async function followZotero(isFollowed) {
  const others = listFollowed().filter((name) => name !== ZOTERO);
  await follow(isFollowed ? [...others, ZOTERO] : others);
  await loadZotero();
}

export class FoldersPart {
  constructor() {
    this.folder = el("p", {});
    this.list = el("ul", { class: "folder-list", "aria-label": t("settings.folders") });
    this.add = makeButton("button", () => this.run(addFolder), makeIcon("folder"), t("settings.folder.add"));
    this.given = el("p", { class: "about" }, t("settings.given", { names: "WATCH" }));
    const read = makeButton(
      "button",
      () => this.run(() => api.startTask("read")),
      makeIcon("again"),
      t("settings.read"),
    );
    const { node, run } = makePart(
      "folders",
      "settings.folders",
      el("p", { class: "about" }, t("settings.folders.text")),
      this.folder,
      this.list,
      this.given,
      el("div", { class: "row" }, this.add, read),
    );
    this.node = node;
    this.run = run;
    settings.watch(() => this.#render());
  }

  #render() {
    const papers = readSetting("PAPERS_DIR");
    const move = makeButton("button quiet", () => this.run(() => this.#move(papers)), t("settings.folder.change"));
    const given = isGiven("PAPERS_DIR");
    this.folder.replaceChildren(t("settings.papers"), " ", isolate(papers, { class: "path" }), " ", given ? "" : move);
    this.given.hidden = !isGiven("WATCH");
    this.add.disabled = isGiven("WATCH");
    this.list.replaceChildren(
      ...listFollowed()
        .filter((name) => name !== ZOTERO)
        .map((path) => {
          const remove = () => this.run(() => follow(listFollowed().filter((other) => other !== path)));
          const label = hideVisually(`: ${path}`);
          const button = makeButton("button quiet", remove, t("settings.folder.remove"), label);
          button.disabled = isGiven("WATCH");
          return el("li", {}, makeIcon("folder"), isolate(path, { class: "path" }), button);
        }),
    );
  }

  /** @param {string} from */
  async #move(from) {
    const path = await chooseFolder(t("settings.papers.choose"), from);
    if (path && path !== from) await changeSettings({ PAPERS_DIR: path });
  }
}

export class ZoteroPart {
  constructor() {
    this.text = el("div", {});
    const { node, run } = makePart("zotero", "settings.zotero", this.text);
    this.node = node;
    this.run = run;
    zotero.watch(() => this.#render());
    settings.onChange(() => this.#render());
  }

  refresh = () => this.run(loadZotero);

  #render() {
    const now = zotero.get();
    if (!now) return;
    if (!now.folder) {
      const again = makeButton("button", this.refresh, makeIcon("again"), t("settings.look"));
      this.text.replaceChildren(el("p", { class: "about" }, t("settings.zotero.none")), again);
      return;
    }
    const found = el(
      "p",
      {},
      t("settings.zotero.found", { count: now.pdfs }),
      " ",
      isolate(now.folder, { class: "path" }),
    );
    const box = el("input", { type: "checkbox", id: "follow-zotero", disabled: isGiven("WATCH") });
    box.checked = now.is_followed;
    box.onchange = () => this.run(() => followZotero(box.checked)).finally(() => this.#render());
    const sync = makeButton(
      "button",
      () => this.run(() => api.startTask("zotero")),
      makeIcon("again"),
      t("settings.zotero.sync"),
    );
    this.text.replaceChildren(
      found,
      ...(now.problem ? [renderProblem(api.errorOf(now.problem))] : []),
      el("label", { class: "check" }, box, t("settings.zotero.follow")),
      el("p", { class: "about" }, t("settings.zotero.text")),
      el("div", { class: "row" }, sync),
    );
  }
}

export class IndexPart {
  constructor() {
    this.counts = el("p", {});
    this.reason = el("div", {});
    const repair = makeButton("button", () => this.run(() => api.startTask("repair")), t("settings.repair"));
    const again = () => this.run(() => rebuild(settings.get()?.rebuild || t("settings.rebuild.asked")));
    const change = (/** @type {Record<string, string>} */ changes) =>
      this.run(() => changeSettings(changes)).finally(() => {
        for (const choice of this.choices) choice.render();
      });
    this.choices = [
      makeChoice({
        id: "set-parser",
        label: "settings.parser",
        names: ["PARSER"],
        list: () => [
          ["fast", t("settings.parser.fast")],
          ["layout", t("settings.parser.layout")],
        ],
        read: () => readSetting("PARSER"),
        choose: (value) => change({ PARSER: value }),
      }),
      makeChoice({
        id: "set-ocr",
        label: "settings.ocr",
        names: ["OCR"],
        list: () => [
          ["auto", t("settings.ocr.auto")],
          ["off", t("settings.ocr.off")],
        ],
        read: () => readSetting("OCR"),
        choose: (value) => change({ OCR: value }),
      }),
    ];
    const { node, run } = makePart(
      "index",
      "models.index",
      this.counts,
      this.reason,
      el("div", { class: "fields choices-of-models" }, ...this.choices.map((choice) => choice.node)),
      el("div", { class: "row" }, makeButton("button", again, makeIcon("again"), t("settings.rebuild.start")), repair),
    );
    this.node = node;
    this.run = run;
    health.watch((now) => {
      const store = now?.store;
      const shown = store
        ? [
            t("library.count", { count: store.papers }),
            t("models.passages", { count: store.chunks }),
            formatBytes(store.bytes),
          ]
        : [t("models.empty")];
      this.counts.textContent = shown.join(", ");
    });
    settings.watch((now) => {
      const text = now?.rebuild ?? "";
      this.reason.replaceChildren(...(text ? [el("p", { class: "warned" }, formatCommands(text))] : []));
    });
    onTaskEnd((task) => this.#offerWithout(task));
  }

  /** A rebuild that would lose papers is offered without them. @param {Api.TaskJson} task */
  async #offerWithout({ kind, state, error }) {
    if (kind !== "rebuild" || state !== "failed" || !error?.error.startsWith("Indexed files that are missing")) return;
    const text = `${error.error} ${t("settings.rebuild.missing")}`;
    if (!(await confirmAction(t("settings.rebuild.title"), text, t("settings.rebuild.without")))) return;
    await this.run(() => api.startRebuild({ changes: {}, drops_missing: true }));
  }
}
