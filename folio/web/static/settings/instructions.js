// Where a person writes, changes and deletes instructions for the wording of answers.

import * as api from "../base/api.js";
import { el, isolate, makeButton, renderProblem } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { showFailure } from "../base/failure.js";
import { t } from "../base/strings.js";
import { offerUndo } from "../base/undo.js";
import { instructions, loadInstructions } from "../ask/instructions.js";

const MAX_NAME = 60; // characters, as the server has it
const MAX_TEXT = 600;

/** @typedef {Api.InstructionJson} Instruction */

export class InstructionSettings {
  node = el("div", { class: "instructions" });
  #list = el("ul", { class: "instruction-list" });
  /** @type {HTMLElement | null} the form of the one that is being changed */
  #editing = null;

  constructor() {
    this.node.append(el("p", { class: "about" }, t("instructions.about")), this.#list, this.#makeForm(null));
    instructions.watch(() => this.#render());
  }

  #render() {
    if (this.#editing) return; // somebody writes in it
    const hadFocus = this.#list.contains(document.activeElement);
    this.#list.replaceChildren(...instructions.get().instructions.map((each) => this.#renderItem(each)));
    if (hadFocus) this.node.querySelector("input")?.focus();
  }

  /** @param {Instruction} instruction */
  #renderItem(instruction) {
    const { name, text, ready } = instruction;
    const item = el("li", {}, el("p", { class: "instruction-name" }, isolate(name)), el("p", {}, isolate(text)));
    if (ready) item.append(el("p", { class: "about" }, t("instructions.ready")));
    else {
      const edit = makeButton("button quiet", () => this.#edit(instruction, item), t("edit"));
      const remove = makeButton("button quiet", () => this.#remove(instruction), t("instructions.delete"));
      edit.setAttribute("aria-label", `${t("edit")}: ${name}`);
      remove.setAttribute("aria-label", `${t("instructions.delete")}: ${name}`);
      item.append(el("div", { class: "row" }, edit, remove));
    }
    return item;
  }

  /** @param {Instruction} instruction @param {HTMLElement} item */
  #edit(instruction, item) {
    this.#editing?.replaceWith(this.#editing);
    this.#editing = this.#makeForm(instruction);
    item.replaceChildren(this.#editing);
    this.#editing.querySelector("input")?.focus();
  }

  #endEditing() {
    this.#editing = null;
    this.#render();
    this.node.querySelector("input")?.focus();
  }

  /** @param {Instruction} instruction */
  async #remove({ id, name }) {
    const key = api.makeKey();
    try {
      await api.deleteInstruction(id, key);
      offerUndo(t("instructions.deleted", { name }), key);
      await loadInstructions();
    } catch (thrown) {
      showFailure(thrown);
    }
  }

  /** The fields of a new instruction, or of one that is changed. @param {Instruction | null} instruction */
  #makeForm(instruction) {
    const prefix = `instruction-${instruction?.id ?? "new"}`;
    const name = el("input", { id: `${prefix}-name`, name: "name", type: "text", maxlength: MAX_NAME, required: true });
    name.autocomplete = "off";
    name.defaultValue = instruction?.name ?? "";
    name.placeholder = t("instructions.name.example");
    const text = el("textarea", { id: `${prefix}-text`, name: "text", rows: "3", maxlength: MAX_TEXT, required: true });
    text.defaultValue = instruction?.text ?? "";
    text.placeholder = t("instructions.text.example");
    const left = el("p", { class: "about", id: `${prefix}-left` });
    text.setAttribute("aria-describedby", left.id);
    const count = () => (left.textContent = t("instructions.left", { count: MAX_TEXT - text.value.length }));
    const problem = el("div");
    const save = async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        await this.#save(instruction, { name: name.value, text: text.value });
        problem.replaceChildren();
        draft.forget();
        if (instruction) return this.#endEditing();
        name.value = text.value = "";
        count();
        name.focus();
      } catch (thrown) {
        problem.replaceChildren(renderProblem(api.toApiError(thrown)));
      }
    };
    const send = el(
      "button",
      { type: "submit", class: "button primary" },
      t(instruction ? "instructions.save" : "instructions.add"),
    );
    const row = el("div", { class: "row" }, send);
    const form = el(
      "form",
      {
        class: "instruction-form",
        "aria-label": t(instruction ? "instructions.edit" : "instructions.new"),
        onsubmit: save,
      },
      el("div", { class: "field" }, el("label", { for: name.id }, t("instructions.name")), name),
      el("div", { class: "field" }, el("label", { for: text.id }, t("instructions.text")), text),
      left,
      problem,
      row,
    );
    const draft = new Draft(form);
    draft.open(`instruction ${instruction?.id ?? ""}`);
    if (instruction) row.append(draft.makeCancel(() => this.#endEditing()));
    text.addEventListener("input", count);
    count();
    return form;
  }

  /** Throws ApiError. @param {Instruction | null} instruction @param {{name: string, text: string}} written */
  async #save(instruction, written) {
    if (!instruction) await api.addInstruction(written);
    else {
      const key = api.makeKey();
      await api.changeInstruction(instruction.id, written, key);
      offerUndo(t("instructions.changed", { name: written.name }), key);
    }
    await loadInstructions();
  }
}
