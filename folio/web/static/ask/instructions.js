// What a person asks of the wording of answers: the instructions, and the picker of one beside the question.

import * as api from "../base/api.js";
import { el } from "../base/dom.js";
import { onEvent } from "../base/events.js";
import { inTurn } from "../base/pace.js";
import { health, options, setOptions } from "../base/state.js";
import { t } from "../base/strings.js";
import { Value } from "../base/value.js";
import { isWriter } from "./models.js";

const MANAGE = " manage"; // no id: it opens the place where they are written

/** @type {Value<Api.InstructionList>} */
export const instructions = new Value(/** @type {Api.InstructionList} */ ({ instructions: [], projects: {} }));
let isLoaded = false;

/** Throws ApiError. */
export const loadInstructions = inTurn(async () => {
  const list = await api.listInstructions();
  const isSame = isLoaded && JSON.stringify(list) === JSON.stringify(instructions.get());
  isLoaded = true;
  if (!isSame) instructions.set(list); // else what is shown would be rendered again, and lose the focus
});

/** The instruction that the next question is asked with; null for none. */
const getChosen = () => {
  const { instruction } = options.get();
  return instructions.get().instructions.find(({ id }) => id === instruction) ?? null;
};

/** The instruction that a project's questions are asked with. @param {string | undefined} project @returns {string | null} */
export const getOfProject = (project) => (project && instructions.get().projects[project]) || null;

/** Chooses the project's instruction, unless a person has chosen another one. @param {string | null} before of the project before */
function follow(before) {
  const { instruction, filters } = options.get();
  if (!instruction || instruction === before) setOptions({ instruction: getOfProject(filters.project) });
}

/** The project of the next question has changed. @param {string | undefined} now @param {string | undefined} before */
async function followProject(now, before) {
  // Also where they are loaded, so that all who watch the options know this change first
  await (isLoaded ? null : loadInstructions().catch(() => {}));
  if (isLoaded && options.get().filters.project === now) follow(getOfProject(before));
}

/** Has a project's questions asked with an instruction. Throws ApiError. @param {string} project @param {string | null} chosen */
export async function chooseForProject(project, chosen) {
  const before = getOfProject(project);
  await api.chooseInstruction(project, chosen);
  await loadInstructions();
  if (options.get().filters.project === project) follow(before);
}

let manage = () => {};

export const picker = el("select", {
  id: "instruction",
  class: "model-picker",
  "aria-label": t("instructions.choose"),
  "aria-describedby": "instruction-note",
  title: t("instructions.choose.title"),
  onchange: () => {
    const chosen = picker.value;
    if (chosen === MANAGE) {
      picker.value = options.get().instruction ?? "";
      manage();
    } else setOptions({ instruction: chosen || null });
  },
});

/** That the chosen instruction needs a model that writes. */
export const note = el("p", { class: "about", id: "instruction-note", hidden: true });

function renderNote() {
  const chosen = getChosen();
  note.hidden = !chosen || !health.get() || isWriter(options.get().model);
  note.textContent = chosen ? t("instructions.needs_model", { name: chosen.name }) : "";
}

function render() {
  const { instructions: known } = instructions.get();
  const chosen = options.get().instruction;
  // One that was deleted meanwhile, or that an address of another library names
  if (isLoaded && chosen && !known.some(({ id }) => id === chosen)) return setOptions({ instruction: null });
  picker.replaceChildren(
    el("option", { value: "" }, t("instructions.none")),
    ...known.map(({ id, name }) => el("option", { value: id }, name)),
    el("option", { value: MANAGE }, t("instructions.manage")),
  );
  picker.value = chosen ?? "";
  renderNote();
}

/** @param {() => void} openManager */
export function setUpInstructions(openManager) {
  manage = openManager;
  instructions.watch(render);
  options.onChange(({ instruction, model, filters }, before) => {
    const isChosen = instruction !== before.instruction;
    if (filters.project !== before.filters.project && !isChosen) followProject(filters.project, before.filters.project);
    if (isChosen) render();
    else if (model !== before.model) renderNote();
  });
  health.onChange(renderNote);
  const load = () => loadInstructions().catch(() => {}); // the start shows why the server cannot be asked
  onEvent("hello", load);
  addEventListener("focus", load); // another tab may have changed them
  load();
}
