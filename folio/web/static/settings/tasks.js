// Long work of the server, which every open page sees: a rebuild, a download of a model, an ingest.

import * as api from "../base/api.js";
import {
  announce,
  el,
  formatCommands,
  hideVisually,
  isolate,
  makeButton,
  makeIcon,
  renderProblem,
} from "../base/dom.js";
import { onEvent } from "../base/events.js";
import { showFailure } from "../base/failure.js";
import { formatNumber, t } from "../base/strings.js";
import { Value } from "../base/value.js";
import { formatBytes } from "./sizes.js";

/** @type {Value<Api.TaskJson[]>} the latest first */
export const tasks = new Value(/** @type {Api.TaskJson[]} */ ([]));

/** @type {Set<(task: Api.TaskJson) => void>} */
const listeners = new Set();

/** Calls the listener with each task that has ended. @param {(task: Api.TaskJson) => void} listener */
export const onTaskEnd = (listener) => void listeners.add(listener);

/** @param {Api.TaskJson} task */
const isRunning = ({ state }) => state === "running" || state === "stopping";

/** Whether a task of this kind runs. @param {Api.TaskJson["kind"]} kind */
export const isUnderWay = (kind) => tasks.get().some((task) => task.kind === kind && isRunning(task));

/** @param {Api.TasksJson} now */
function take({ tasks: listed }) {
  const before = new Map(tasks.get().map((task) => [task.id, task]));
  tasks.set(listed);
  for (const task of listed) {
    const known = before.get(task.id);
    if (isRunning(task) || (known && !isRunning(known))) continue;
    if (known) announce(`${nameOf(task)}. ${describe(task)}`);
    for (const listener of listeners) listener(task);
  }
  // What was read in a watched folder leaves the list when it is done.
  for (const task of before.values()) {
    if (isRunning(task) && !listed.some(({ id }) => id === task.id)) for (const listener of listeners) listener(task);
  }
}

/** @param {Api.TaskJson} task */
const nameOf = ({ kind, about }) => t(`settings.task.${kind}`, { about });

/** How far a task is, or what came of it. @param {Api.TaskJson} task */
function describe({ state, step, done, of, kind, result }) {
  if (state === "done") return result;
  if (state === "cancelled") return t("settings.task.cancelled");
  if (state === "stopping") return t("settings.task.stopping");
  if (state === "failed") return t("settings.task.failed");
  if (kind === "pull") return of ? t("settings.task.bytes", { done: formatBytes(done), of: formatBytes(of) }) : step;
  if (of) return t("settings.task.files", { done: formatNumber(done), of: formatNumber(of) });
  return t("settings.task.looking");
}

/** @param {Api.TaskJson} task */
function renderTask(task) {
  const name = nameOf(task);
  const running = isRunning(task);
  const label = running ? t("cancel") : t("settings.task.dismiss");
  const end = makeButton(
    "button quiet",
    () => api.endTask(task.id).catch(showFailure),
    label,
    hideVisually(`: ${name}`),
  );
  const progress = el("progress", {
    max: task.of || null,
    value: task.of ? task.done : null,
    "aria-label": name,
    "data-kind": task.kind,
  });
  const problem = task.error ? renderProblem(api.errorOf(task.error)) : null;
  problem?.removeAttribute("role"); // it is announced once
  return el(
    "li",
    { class: `task ${task.state}`, "data-kind": task.kind },
    el("p", { class: "task-name" }, isolate(name)),
    task.reason && running ? el("p", { class: "about" }, formatCommands(task.reason)) : null,
    running ? progress : null,
    task.error ? problem : el("p", { class: "stage" }, isolate(describe(task))),
    task.kind === "sync" || task.state === "stopping" ? null : end,
  );
}

/** The list of tasks, for the view of the settings. */
export function makeTaskList() {
  const list = el("ul", { class: "tasks", "aria-label": t("settings.tasks") });
  tasks.watch((now) => {
    const focused = list.contains(document.activeElement);
    list.replaceChildren(...now.map(renderTask));
    list.hidden = !now.length;
    if (focused) list.querySelector("button")?.focus();
  });
  return list;
}

/** @param {HTMLElement} line in all views: what runs, and how far it is */
export function setUpTasks(line) {
  const load = () => api.listTasks().then(take, () => {});
  onEvent("tasks", take);
  onEvent("hello", load);
  tasks.watch((now) => {
    const running = now.find(isRunning);
    line.hidden = !running;
    line.replaceChildren(...(running ? [makeIcon("again"), ` ${nameOf(running)}: ${describe(running)}`] : []));
  });
}
