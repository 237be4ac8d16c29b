// The footer: how many papers there are, and which models are used; a panel says more about both.

import { findModelServers, toApiError } from "../base/api.js";
import { el, formatCommands, isolate, makeButton, renderMessage } from "../base/dom.js";
import { health } from "../base/state.js";
import { t } from "../base/strings.js";

const MEGABYTE = 1e6;

/** @type {(keyof Api.Health["models"])[]} */
const ROLES = ["embedder", "reranker", "llm"];

/** @param {Api.Health} now */
function renderLine({ store, models }) {
  const roles = [t("models.role.search"), t("models.role.ranking"), t("models.role.answers")];
  const used = [models.embedder, models.reranker, models.llm];
  return [
    store ? t("library.count", { count: store.papers }) : t("models.empty"),
    el(
      "span",
      {},
      used.flatMap((model, at) => (model ? [` · ${roles[at]}`, isolate(model)] : [])),
    ),
  ];
}

/** @param {Api.Health} now @returns {[string, string][]} */
function listFacts({ models, store, fingerprint }) {
  /** @type {[string, string | null][]} */
  const rows = [
    [t("models.search"), models.embedder],
    [t("models.ranking"), models.reranker ?? t("models.none")],
    [t("models.answers"), models.llm],
  ];
  if (store) {
    const size = t("models.size", { size: (store.bytes / MEGABYTE).toFixed(1) });
    const counts = [t("library.count", { count: store.papers }), t("models.passages", { count: store.chunks })];
    const built = Object.entries(fingerprint ?? {}).filter(([, value]) => value);
    rows.push(
      [t("library.papers"), [...counts, size].join(", ")],
      [t("models.index"), store.folder],
      [t("models.built"), built.map((pair) => pair.join(" ")).join(", ")],
    );
  }
  return /** @type {[string, string][]} */ (rows.filter(([, value]) => value));
}

/** A hint that the settings choose built-in models. @param {Api.Health} now */
function describeChosen({ models, better }) {
  const chosen = ROLES.some((role) => /built in/.test(models[role] ?? ""));
  return better.length || !chosen ? [] : [el("p", {}, renderMessage(t("models.chosen")))];
}

/** The model servers that were found. */
const found = el("ul", { role: "status" });

async function showServers() {
  try {
    const { servers } = await findModelServers();
    const lines = servers.map(({ chat_models: names, ...server }) =>
      t("models.found", { ...server, models: names.join(", ") || t("models.found.empty") }),
    );
    const shown = lines.length ? lines : [t("models.found.none")];
    found.replaceChildren(...shown.map((line) => el("li", {}, formatCommands(line))));
  } catch (thrown) {
    found.replaceChildren(el("li", {}, toApiError(thrown).message));
  }
}

/** @param {Api.Health} now */
function renderText(now) {
  const facts = listFacts(now).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, isolate(value))]);
  const steps = now.better.map((step) => el("li", {}, renderMessage(step[0].toUpperCase() + step.slice(1))));
  return [
    el("dl", {}, facts),
    ...(steps.length ? [el("h3", {}, t("models.improve")), el("ul", {}, steps)] : []),
    ...describeChosen(now),
    el("p", {}, renderMessage(t("models.doctor"))),
    makeButton("button", showServers, t("models.find")),
    found,
  ];
}

/** @param {{line: HTMLElement, button: HTMLElement, text: HTMLElement}} elements */
export function setUpModels({ line, button, text }) {
  health.onChange((now) => {
    if (!now) return;
    document.body.classList.toggle("unlogged", !now.logged);
    line.replaceChildren(...renderLine(now));
    button.textContent = t(now.better.length ? "models.improve" : "models");
    text.replaceChildren(...renderText(now));
  });
}
