// The models: which one does what, which others are there, and getting one from Ollama.

import * as api from "../base/api.js";
import { el, isolate, makeButton, makeIcon } from "../base/dom.js";
import { health } from "../base/state.js";
import { t } from "../base/strings.js";
import { Value } from "../base/value.js";
import { makeChoice, makePart } from "./part.js";
import { formatBytes } from "./sizes.js";
import { changeSettings, settings, readSetting } from "./state.js";
import { isUnderWay, onTaskEnd, tasks } from "./tasks.js";

/** @typedef {Api.KnownModel} Model */

const SUGGESTED = ["llama3.1:8b", "nomic-embed-text"];

/** @type {Value<Api.KnownModels | null>} */
const models = new Value(/** @type {Api.KnownModels | null} */ (null));

/** @param {Model} model */
const describe = ({ name, source, bytes }) =>
  [name, source === "builtin" ? "" : t(`settings.source.${source}`), bytes ? formatBytes(bytes) : ""]
    .filter(Boolean)
    .join(" · ");

/** The models on servers for a use, as choices: "ollama llama3.1:8b". @param {Model["use"]} use @returns {[string, string][]} */
const listServed = (use) =>
  (models.get()?.models ?? [])
    .filter((model) => model.use === use && (model.source === "ollama" || model.source === "openai"))
    .map((model) => [`${model.source} ${model.name}`, describe(model)]);

/** @param {string} choice @param {string} model @param {Model["use"]} use */
function readServed(choice, model, use) {
  if (choice !== "ollama" && choice !== "openai") return choice;
  const named = `${choice} ${model}`;
  const found = listServed(use).find(([value]) => value === named || value === `${named}:latest`);
  return found ? found[0] : named;
}

/** A model that is chosen and not there stays in the list. @param {[string, string][]} listed @param {string} chosen */
function withChosen(listed, chosen) {
  if (!chosen.includes(" ") || listed.some(([value]) => value === chosen)) return listed;
  const name = chosen.slice(chosen.indexOf(" ") + 1);
  return /** @type {[string, string][]} */ ([...listed, [chosen, t("settings.model.away", { name })]]);
}

/** @param {string} value @param {string} setting @param {string} model */
function changesFor(value, setting, model) {
  const [choice, name] = value.split(/ (.*)/s, 2);
  return name ? { [setting]: choice, [model]: name.replace(/:latest$/, "") } : { [setting]: choice };
}

export class ModelsPart {
  constructor() {
    this.list = el("ul", { class: "model-list", "aria-label": t("settings.models.here") });
    this.server = el("div", { class: "model-server" });
    const { node, run } = makePart("models", "models", el("p", { class: "about" }, t("settings.models.text")));
    this.node = node;
    this.run = run;
    this.form = this.#makeForm();
    const change = (/** @type {Record<string, string>} */ changes) =>
      this.run(() => changeSettings(changes)).finally(() => this.#renderChoices());
    const now = (/** @type {keyof Api.Health["models"]} */ role) => health.get()?.models[role] || t("models.none");
    this.choices = [
      makeChoice({
        id: "set-llm",
        label: "models.answers",
        names: ["LLM", "LLM_MODEL"],
        list: () =>
          withChosen(
            [
              ["auto", t("settings.auto", { model: now("llm") })],
              ["builtin", t("ask.model.builtin")],
              ...listServed("answers"),
            ],
            readServed(readSetting("LLM"), readSetting("LLM_MODEL"), "answers"),
          ),
        read: () => readServed(readSetting("LLM"), readSetting("LLM_MODEL"), "answers"),
        choose: (value) => change(changesFor(value, "LLM", "LLM_MODEL")),
      }),
      makeChoice({
        id: "set-embedder",
        label: "settings.embedder",
        names: ["EMBEDDER", "EMBED_MODEL"],
        list: () =>
          withChosen(
            [
              ["auto", t("settings.auto.index", { model: now("embedder") })],
              ["builtin", t("settings.embedder.builtin")],
              ...listServed("search"),
            ],
            readServed(readSetting("EMBEDDER"), readSetting("EMBED_MODEL"), "search"),
          ),
        read: () => readServed(readSetting("EMBEDDER"), readSetting("EMBED_MODEL"), "search"),
        choose: (value) => change(changesFor(value, "EMBEDDER", "EMBED_MODEL")),
      }),
      makeChoice({
        id: "set-reranker",
        label: "models.ranking",
        names: ["RERANKER"],
        list: () => [
          ["auto", t("settings.auto", { model: now("reranker") })],
          ["builtin", t("settings.reranker.builtin")],
          ["crossencoder", t("settings.reranker.crossencoder")],
          ["none", t("settings.reranker.none")],
        ],
        read: () => readSetting("RERANKER"),
        choose: (value) => change({ RERANKER: value }),
      }),
      makeChoice({
        id: "set-verifier",
        label: "settings.verifier",
        names: ["VERIFIER"],
        list: () => [
          ["auto", t("settings.verifier.auto")],
          ["llm", t("settings.verifier.llm")],
          ["crossencoder", t("settings.verifier.crossencoder")],
          ["none", t("settings.verifier.none")],
        ],
        read: () => readSetting("VERIFIER"),
        choose: (value) => change({ VERIFIER: value }),
      }),
    ];
    const here = el("h3", {}, t("settings.models.here"));
    const fields = el("div", { class: "fields choices-of-models" }, ...this.choices.map((choice) => choice.node));
    node.lastElementChild?.before(fields, here, this.list, this.server);
    models.watch(() => this.#render());
    health.onChange(() => this.#renderChoices());
    tasks.onChange(() => this.#renderPull());
    onTaskEnd(({ kind }) => {
      if (kind === "pull" || kind === "rebuild") this.refresh();
    });
  }

  #renderChoices() {
    for (const choice of this.choices) choice.render();
  }

  names = el("datalist", { id: "pull-names" });
  field = el("input", { type: "text", id: "pull", list: "pull-names", maxlength: "200", autocomplete: "off" });
  button = el("button", { type: "submit", class: "button" }, makeIcon("export"), t("settings.pull"));

  #makeForm() {
    const pull = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const name = this.field.value.trim();
      if (name && !isUnderWay("pull")) this.run(() => api.startPull(name));
    };
    return el(
      "form",
      { class: "pull", onsubmit: pull },
      el("label", { for: "pull" }, t("settings.pull.label")),
      el("div", { class: "row" }, this.field, this.button),
      el("p", { class: "about" }, t("settings.pull.text")),
      this.names,
    );
  }

  async refresh() {
    if (!settings.get()?.changeable) return;
    await this.run(async () => models.set(await api.listModels()));
  }

  #render() {
    const now = models.get();
    if (!now) return;
    this.#renderChoices();
    const named = now.models.filter(({ name }) => name);
    this.list.replaceChildren(
      ...named.map((model) =>
        el(
          "li",
          {},
          isolate(model.name, { class: "model-name" }),
          el("span", { class: "about" }, t(`settings.use.${model.use}`)),
          el("span", { class: "about" }, t(`settings.source.${model.source}`)),
          el("span", { class: "about at" }, model.bytes ? formatBytes(model.bytes) : ""),
          model.in_use ? el("span", { class: "in-use" }, t("settings.model.used")) : null,
        ),
      ),
    );
    const ollama = now.servers.find(({ kind }) => kind === "ollama");
    const listed = [...new Set([...now.wanted, ...SUGGESTED])];
    this.names.replaceChildren(...listed.map((value) => el("option", { value })));
    if (!this.field.value && now.wanted[0]) this.field.value = now.wanted[0];
    if (ollama?.version) {
      const found = t("settings.ollama", { version: ollama.version, url: ollama.url });
      this.server.replaceChildren(el("p", { class: "about" }, found), this.form);
    } else {
      const again = makeButton("button", () => this.refresh(), makeIcon("again"), t("settings.look"));
      const away = t("settings.ollama.away", { url: ollama?.url ?? "" });
      this.server.replaceChildren(el("p", {}, away), again);
    }
    this.#renderPull();
  }

  #renderPull() {
    this.button.disabled = isUnderWay("pull");
  }
}
