// The form that corrects what is known about a paper.

import * as api from "../base/api.js";
import { byId, el, hideVisually, isolate, makeButton, renderProblem, showToast } from "../base/dom.js";
import { enterPanel, leavePanel } from "../base/panels.js";

const FIELDS = {
  title: ["Title", "textarea", {}],
  authors: ["Authors", "textarea", {}, "One on each line: Family, Given. An organisation in braces: {European Union}."],
  year: ["Year", "input", { inputmode: "numeric", pattern: "[0-9]{4}", title: "Four digits, such as 2014", size: "6" }],
  venue: ["Journal, conference or university", "input", {}],
  doi: ["DOI", "input", {}],
};
const ORIGINS = {
  "": "Not known",
  page: "From its first pages",
  "pdf metadata": "From the file’s metadata",
  identifier: "From its identifier",
  "file date": "From the file’s date",
  "cited works": "Guessed from the works that it cites",
  "file name": "From the file’s name",
  arxiv: "From arXiv",
  openalex: "From OpenAlex",
  crossref: "From Crossref",
  semanticscholar: "From Semantic Scholar",
  bibliography: "From your bibliography",
  zotero: "From Zotero",
  person: "Your edit",
};

let edited = null; // the paper, as the server knows it
let onSaved = () => {};

/** Opens the form for a paper. `saved` is called after each change. Raises ApiError. */
export async function editPaper(id, saved) {
  edited = await api.getPaper(id);
  onSaved = saved;
  byId("edit-title").replaceChildren("Edit ", isolate(edited.file));
  byId("edit-problem").replaceChildren();
  byId("edit-fields").replaceChildren(...Object.keys(FIELDS).map(renderField));
  byId("edit").showModal();
  enterPanel(byId("edit"), () => byId("edit").close());
  byId("edit-fields").querySelector("textarea").focus();
}

function renderField(name) {
  const [label, tag, attributes, hint] = FIELDS[name];
  const id = `edit-field-${name}`;
  const control = el(tag, { id, "aria-describedby": `${id}-note`, autocomplete: "off", dir: "auto", ...attributes });
  if (tag === "input") control.type = "text";
  else control.rows = name === "title" ? 2 : Math.min(6, Math.max(2, edited.fields.authors.value.length));
  control.value = toText(name, edited);
  return el("div", { class: "field" }, el("label", { for: id }, label), control, renderNote(name, hint));
}

function renderNote(name, hint) {
  const { origin, sure } = edited.fields[name];
  const text = `${ORIGINS[origin] ?? origin}${origin && !sure ? ", not sure" : ""}.${hint ? ` ${hint}` : ""}`;
  const which = () => hideVisually(`: ${FIELDS[name][0]}`);
  const reset = makeButton("button quiet", () => resetField(name), "Undo my edit", which());
  const note = el("p", { id: `edit-field-${name}-note` }, text);
  return el("div", { class: "edit-note" }, note, origin === "person" ? reset : null);
}

function toText(name, paper) {
  const { value } = paper.fields[name];
  return name === "authors" ? value.map(formatPerson).join("\n") : String(value ?? "");
}

const formatPerson = ({ family, given }) =>
  given ? `${family}, ${given}` : /\s/.test(family) ? `{${family}}` : family;

function toValue(name, text) {
  if (name === "authors")
    return text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  return name === "year" && text.trim() ? Number(text) : text.trim();
}

async function resetField(name) {
  if (!(await change({ [name]: null }))) return;
  const before = byId(`edit-field-${name}`).closest(".field");
  before.replaceWith(renderField(name));
  byId(`edit-field-${name}`).focus();
}

async function save(event) {
  event.preventDefault();
  const texts = Object.keys(FIELDS).map((name) => [name, byId(`edit-field-${name}`).value]);
  const changed = texts.filter(([name, text]) => text !== toText(name, edited));
  if (changed.length) {
    if (!(await change(Object.fromEntries(changed.map(([name, text]) => [name, toValue(name, text)]))))) return;
    showToast("Saved.");
  }
  byId("edit").close();
}

/** Sends a change; returns whether it was made. */
async function change(edits) {
  const buttons = byId("edit").querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  try {
    edited = await api.editPaper(edited.id, edits);
    byId("edit-problem").replaceChildren();
  } catch (thrown) {
    byId("edit-problem").replaceChildren(renderProblem(api.toApiError(thrown)));
    byId("edit-problem").scrollIntoView({ block: "nearest" });
    return false;
  } finally {
    for (const button of buttons) button.disabled = false;
  }
  await onSaved();
  return true;
}

/** closed: called with the paper's id when the form has closed. */
export function setUpEdit(closed) {
  byId("edit-form").addEventListener("submit", save);
  byId("edit-cancel").onclick = () => byId("edit").close();
  byId("edit").addEventListener("close", () => {
    leavePanel(byId("edit"));
    closed(edited.id);
  });
}
