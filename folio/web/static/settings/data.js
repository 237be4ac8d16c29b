// What leaves this computer, what takes space on it, backups, and the log of questions.

import * as api from "../base/api.js";
import { confirmAction, el, formatDate, isolate, makeButton, makeIcon, showToast } from "../base/dom.js";
import { startAgain } from "../base/events.js";
import { health } from "../base/state.js";
import { t } from "../base/strings.js";
import { makePart } from "./part.js";
import { formatBytes } from "./sizes.js";
import { changeSettings, isGiven, settings } from "./state.js";

const FIRST = 50; // questions of the log
const MOST = 1000;

export class InternetPart {
  constructor() {
    this.state = el("p", { role: "status" });
    this.toggle = makeButton("button", () => this.#toggle(), "");
    this.given = el("p", { class: "about" }, t("settings.given", { names: "ONLINE" }));
    const sent = /** @type {const} */ (["search", "missing", "citations", "download", "mail", "never"]);
    const { node, run } = makePart(
      "internet",
      "settings.internet",
      this.state,
      el("p", { class: "about" }, t("settings.internet.text")),
      el("ul", { class: "sent" }, ...sent.map((what) => el("li", {}, t(`settings.sent.${what}`)))),
      el("div", { class: "row" }, this.toggle),
      this.given,
    );
    this.node = node;
    this.run = run;
    health.watch(() => this.#render());
    settings.onChange(() => this.#render());
  }

  #render() {
    const isOn = health.get()?.online ?? false;
    this.state.textContent = t(isOn ? "settings.internet.on" : "settings.internet.off");
    this.toggle.textContent = t(isOn ? "settings.internet.stop" : "settings.internet.start");
    this.given.hidden = !isGiven("ONLINE");
    this.toggle.disabled = isGiven("ONLINE");
  }

  #toggle() {
    const isOn = health.get()?.online ?? false;
    return this.run(() => changeSettings({ ONLINE: isOn ? "false" : "true" }));
  }
}

export class StoragePart {
  constructor() {
    this.sizes = el("dl", { class: "sizes" });
    this.copies = el("ul", { class: "copies", "aria-label": t("settings.copies") });
    this.input = el("input", { type: "file", id: "restore", class: "unseen", accept: ".gz,.sqlite" });
    this.input.onchange = () => this.#restoreFile();
    const { node, run } = makePart(
      "storage",
      "settings.storage",
      this.sizes,
      el("h3", {}, t("settings.backup")),
      el("p", { class: "about" }, t("settings.backup.text")),
      el(
        "div",
        { class: "row" },
        el("a", { class: "button", href: "backup", download: "" }, makeIcon("export"), t("settings.backup.get")),
        el("label", { class: "button file-button" }, this.input, t("settings.restore.file")),
      ),
      this.copies,
    );
    this.node = node;
    this.run = run;
  }

  refresh = () =>
    this.run(async () => {
      const { sizes, copies } = await api.getStorage();
      this.sizes.replaceChildren(
        ...sizes.flatMap(({ what, bytes, place }) => [
          el("dt", {}, t(`settings.size.${what}`)),
          el("dd", {}, el("span", { class: "at" }, formatBytes(bytes)), " ", isolate(place, { class: "path about" })),
        ]),
      );
      this.copies.replaceChildren(
        ...copies.map((day) => {
          const restore = () => this.#restore(t("settings.copy", { day }), () => api.restoreCopy(day));
          return el("li", {}, t("settings.copy", { day }), makeButton("button quiet", restore, t("settings.restore")));
        }),
      );
    });

  #restoreFile() {
    const file = this.input.files?.[0];
    this.input.value = "";
    if (file) this.#restore(file.name, () => api.restoreBackup(file));
  }

  /** @param {string} name @param {() => Promise<Api.Restored>} restore */
  async #restore(name, restore) {
    const text = t("settings.restore.text", { name });
    if (!(await confirmAction(t("settings.restore.title"), text, t("settings.restore")))) return;
    await this.run(async () => {
      const { conversations, questions, notes, edits } = await restore();
      showToast(t("settings.restored", { conversations, questions, notes, edits }));
      startAgain();
      await this.refresh();
    });
  }
}

export class LogPart {
  #most = FIRST;

  constructor() {
    this.count = el("p", { role: "status" });
    this.list = el("ol", { class: "log-list", "aria-label": t("settings.log") });
    this.more = makeButton("button quiet", () => this.#showMore(), t("settings.log.more"));
    this.remove = makeButton("button danger", () => this.#delete(), makeIcon("delete"), t("settings.log.delete"));
    this.details = el("details", {}, el("summary", {}, t("settings.log.show")), this.list, this.more);
    const { node, run } = makePart(
      "log",
      "settings.log",
      el("p", { class: "about" }, t("settings.log.text")),
      this.count,
      this.details,
      el("div", { class: "row" }, this.remove),
    );
    this.node = node;
    this.run = run;
  }

  refresh = () =>
    this.run(async () => {
      const { questions, count, logged } = await api.getLog(this.#most);
      this.count.textContent = count || logged ? t("settings.log.count", { count }) : t("settings.log.off");
      this.details.hidden = !count;
      this.remove.hidden = !count;
      this.more.hidden = count <= questions.length || this.#most >= MOST;
      this.list.replaceChildren(
        ...questions.map(({ asked, question, answer, model, feedback }) =>
          el(
            "li",
            {},
            el("p", { class: "logged" }, isolate(question)),
            el(
              "p",
              { class: "about" },
              [formatDate(asked), model, feedback && t(`settings.log.${feedback}`)].filter(Boolean).join(" · "),
            ),
            el("p", { class: "answer-of-log" }, isolate(answer)),
          ),
        ),
      );
    });

  #showMore() {
    this.#most = Math.min(MOST, 4 * this.#most);
    return this.refresh();
  }

  async #delete() {
    const title = t("settings.log.delete");
    if (!(await confirmAction(title, t("settings.log.delete.text"), title))) return;
    await this.run(async () => {
      const { deleted } = await api.deleteLog();
      showToast(t("settings.log.deleted", { count: deleted }));
      await this.refresh();
    });
    this.count.closest("section")?.querySelector("h2")?.focus();
  }
}
