// The model that answers: its picker beside the question, with its real name.

import { el, isolate, makeButton, recall, remember } from "../base/dom.js";
import { health, options, setOptions } from "../base/state.js";
import { t } from "../base/strings.js";

export const BUILTIN = "builtin"; // as the server names the built-in answers, which are quotes

/** The models that may answer, the default one first: their ids, and the names that people know. */
/** @returns {[string | null, string][]} */
function listModels() {
  const { chat_models: names = [], model = "" } = health.get() ?? {};
  /** @param {string} id */
  const nameOf = (id) => (id === BUILTIN ? t("ask.model.builtin") : id);
  const others = [BUILTIN, ...names].filter((id) => id !== model);
  /** @type {[string | null, string][]} */
  const listed = others.map((id) => [id, nameOf(id)]);
  return [[null, model ? nameOf(model) : t("ask.model.default")], ...listed];
}

/** The model that a request names, or null for the default one: whether it writes, or only quotes. */
/** @param {string | null} model */
export const isWriter = (model) => (model ?? health.get()?.model ?? "") !== BUILTIN;

/** Whether a model wrote an answer, as its reply names the model. @param {Record<string, string>} models */
export const wasWritten = (models) => !/\(built in\)$/.test(models.llm ?? "");

/** The choice that was made last in this browser. */
export const recallModel = () => recall("model") || null;

export const picker = el("select", {
  id: "model",
  class: "model-picker",
  "aria-label": t("ask.model"),
  title: t("ask.model.title"),
  onchange: () => {
    setOptions({ model: picker.value || null });
    remember("model", picker.value);
  },
});

function render() {
  if (!health.get()) return;
  const models = listModels();
  picker.replaceChildren(...models.map(([id, name]) => el("option", { value: id ?? "" }, name)));
  const { model } = options.get();
  if (model && !models.some(([id]) => id === model)) setOptions({ model: null }); // it is the default one, or gone
  picker.value = options.get().model ?? "";
}

export function setUpModels() {
  health.watch(render);
  options.onChange(({ model }, before) => {
    if (model !== before.model) render();
  });
}

/**
 * A button for each model, to ask a question again with it.
 * @param {(model: string | null) => void} choose
 */
export const renderModelButtons = (choose) => [
  el("p", { class: "about" }, t("ask.again.with")),
  ...listModels().map(([id, name]) => makeButton("button quiet", () => choose(id), isolate(name))),
];
