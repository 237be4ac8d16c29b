// Projects: the list of them, and one with its papers, rules, conversations and notes.

import * as api from "../base/api.js";
import { el, isolate, makeButton, makeIcon, makeIconButton, renderProblem } from "../base/dom.js";
import { Draft } from "../base/drafts.js";
import { onEvent } from "../base/events.js";
import { showFailure } from "../base/failure.js";
import { atMostEvery } from "../base/pace.js";
import { goTo, linkTo, place } from "../base/router.js";
import { getTitle, library, loadProjects, projects } from "../base/state.js";
import { t } from "../base/strings.js";
import { joinLines, shortenAtWord } from "../base/text.js";
import { offerUndo } from "../base/undo.js";
import { chooseForProject, getOfProject, instructions } from "../ask/instructions.js";
import { askForReview } from "../library/ask_review.js";
import { nameNote } from "../notes/note_list.js";
import { openNewTable } from "../table/new_table.js";
import { describeProgress } from "../table/table_list.js";
import { describeRule } from "./rules.js";

/** @typedef {Api.ProjectDetails} Project */

const MOST_PAPERS = 100; // that are listed at first
const LONGEST_NAME = 80; // characters of a part, where a message names it
const MOST_LISTED = 6; // projects beside the page
const TABLES_MS = 1500; // between two loads as tables are filled

/** @param {string} project */
const linkToProject = (project) => linkTo({ view: "projects", query: { project } });

class ProjectsView {
  /** @type {Project | null} */
  project = null;
  /** @type {Api.TableSummaryJson[]} of the project */
  tables = [];
  /** @type {Api.NoteJson[]} that were put into it one by one */
  notes = [];
  loads = 0; // a later one makes an earlier one void
  shown = MOST_PAPERS;

  /** @param {HTMLElement} root @param {{ask: (project: string) => void}} hooks */
  constructor(root, { ask }) {
    this.ask = ask;
    this.root = root;
    this.body = el("div", { class: "reading wide projects" });
    const given = { class: "scroll", tabindex: "0", role: "group", "aria-label": t("projects") };
    root.append(el("div", given, this.body));
  }

  /** Shows what the address names. */
  async follow() {
    const { view, query } = place.get();
    if (view !== "projects") return;
    if (this.project && this.project.id !== query.project) this.shown = MOST_PAPERS;
    this.loads += 1;
    const load = this.loads;
    if (!query.project) {
      this.project = null;
      return this.#showList();
    }
    try {
      const [project, { tables }] = await Promise.all([api.getProject(query.project), api.listTables(query.project)]);
      const { notes } = project.note_ids.length ? await api.listProjectNotes(project.id) : { notes: [] };
      if (load !== this.loads) return;
      this.project = project;
      this.tables = tables;
      this.notes = notes;
      this.#show(project);
    } catch (thrown) {
      if (load !== this.loads) return;
      const error = api.toApiError(thrown);
      const isGone = [404, 422].includes(error.status);
      const back = () => goTo({ view: "projects", query: {} });
      this.body.replaceChildren(
        el("h1", {}, t("projects")),
        renderProblem(error, isGone ? back : () => this.follow(), t(isGone ? "projects.all" : "again")),
      );
    }
  }

  // The list

  #showList() {
    if (this.body.querySelector(".new-project:not([hidden])")) return this.#refreshList(); // somebody writes in it
    const name = el("input", { type: "text", id: "project-name", name: "name", maxlength: "200", autocomplete: "off" });
    name.required = true;
    const problem = el("div");
    const form = el(
      "form",
      { class: "new-project row", hidden: true },
      el("label", { for: name.id }, t("projects.name")),
      name,
      el("button", { type: "submit", class: "button primary" }, t("projects.create")),
      problem,
    );
    const draft = new Draft(form);
    draft.open("new project");
    const start = makeButton(
      "button",
      () => {
        form.hidden = !form.hidden;
        start.setAttribute("aria-expanded", String(!form.hidden));
        if (!form.hidden) name.focus();
      },
      makeIcon("plus"),
      t("projects.new"),
    );
    start.setAttribute("aria-expanded", "false");
    form.onsubmit = async (event) => {
      event.preventDefault();
      try {
        const made = await api.addProject({ name: name.value });
        draft.forget();
        form.hidden = true;
        await loadProjects();
        goTo({ view: "projects", query: { project: made.id } });
      } catch (thrown) {
        problem.replaceChildren(renderProblem(api.toApiError(thrown)));
      }
    };
    this.list = el("div");
    const head = el("div", { class: "view-head" }, el("h1", {}, t("projects")), start);
    this.body.replaceChildren(head, form, this.list);
    this.#refreshList();
  }

  #refreshList() {
    const listed = [...(projects.get()?.values() ?? [])];
    const own = listed.filter((project) => project.own);
    const collections = listed.filter((project) => !project.own);
    /** @param {Api.ProjectSummary} project */
    const item = (project) =>
      el(
        "li",
        {},
        el("a", { class: "source", href: linkToProject(project.id) }, isolate(project.name)),
        el("span", { class: "about" }, t("ask.papers", { count: project.papers })),
        project.own ? null : makeButton("button quiet", () => this.#copy(project), t("project.copy")),
      );
    this.list?.replaceChildren(renderList(own.map(item), t("projects.none"), "lead"));
    if (!collections.length) return;
    this.list?.append(
      el("h2", {}, t("projects.collections")),
      el("p", { class: "about" }, t("projects.collections.about")),
      renderList(collections.map(item)),
    );
  }

  /** @param {Api.ProjectSummary} collection */
  async #copy({ id, name }) {
    const names = new Set([...(projects.get()?.values() ?? [])].map((each) => each.name.toLowerCase()));
    const last = name.split("/").at(-1) ?? name;
    const free = [last, name, ...Array.from({ length: 50 }, (_, at) => `${last} ${at + 2}`)];
    try {
      const made = await api.addProject({
        name: free.find((each) => !names.has(each.toLowerCase())) ?? name,
        copy_of: id,
      });
      await loadProjects();
      goTo({ view: "projects", query: { project: made.id } });
    } catch (thrown) {
      showFailure(thrown);
    }
  }

  // One project

  /** @param {Project} project */
  #show(project) {
    if (this.body.querySelector(".edit-project")) return; // somebody writes in it
    const focusAgain = this.#findFocus();
    this.body.replaceChildren(
      el("p", {}, el("a", { href: linkTo({ view: "projects", query: {} }) }, t("projects.all"))),
      this.#renderHead(project),
      ...this.#renderRules(project),
      ...this.#renderPapers(project),
      ...this.#renderTables(project),
      ...this.#renderConversations(project),
      ...this.#renderNotes(project),
    );
    focusAgain?.();
  }

  /** What focuses the same control again, or the one in its place; null if none of them has the focus. */
  #findFocus() {
    const focused = document.activeElement;
    const key = focused instanceof HTMLElement && this.body.contains(focused) ? focused.dataset.key : undefined;
    if (!key) return null;
    const list = focused?.closest("ul");
    const at = [...(list?.children ?? [])].findIndex((item) => item.contains(focused));
    return () => {
      const items = list ? [...this.body.querySelectorAll(`ul[class="${list.className}"] > li`)] : [];
      const inPlace = items[Math.min(at, items.length - 1)]?.querySelector("button");
      const same = this.body.querySelector(`[data-key="${CSS.escape(key)}"]`);
      /** @type {HTMLElement | null} */ (same ?? inPlace ?? this.body.querySelector("h1"))?.focus();
    };
  }

  /** @param {Project} project */
  #renderHead(project) {
    const ask = makeButton("button primary", () => this.ask(project.id), t("project.ask"));
    ask.disabled = !project.papers;
    const { id, papers } = project;
    const review = makeButton(
      "button quiet",
      () => askForReview(this.root, { project: [id] }, papers),
      makeIcon("text"),
      t("review"),
    );
    const table = makeButton("button quiet", () => this.#makeTable(project), makeIcon("plus"), t("tables.make"));
    review.disabled = table.disabled = !papers;
    const own = [
      makeButton("button quiet", () => this.#edit(project), makeIcon("edit"), t("project.rename")),
      makeButton("button quiet", () => this.#delete(project), makeIcon("delete"), t("project.delete")),
    ];
    const copy = makeButton("button quiet", () => this.#copy(project), t("project.copy"));
    return el(
      "header",
      { class: "project-head" },
      el("h1", { tabindex: "-1" }, isolate(project.name)),
      el("p", { class: "status" }, t("ask.papers", { count: project.papers })),
      project.about ? el("p", { class: "project-about" }, isolate(project.about)) : null,
      el("div", { class: "row" }, ask, review, table, project.own ? own : copy),
      project.own ? this.#renderInstruction(id) : null,
    );
  }

  /** @param {string} project its id */
  #renderInstruction(project) {
    const choice = el(
      "select",
      { "data-key": "instruction", title: t("project.instruction.title"), autocomplete: "off" },
      el("option", { value: "" }, t("instructions.none")),
      instructions.get().instructions.map(({ id, name }) => el("option", { value: id }, name)),
    );
    choice.value = getOfProject(project) ?? "";
    choice.onchange = async () => {
      try {
        await chooseForProject(project, choice.value || null);
      } catch (thrown) {
        choice.value = getOfProject(project) ?? "";
        showFailure(thrown);
      }
    };
    return el("label", { class: "row project-instruction" }, t("project.instruction"), choice);
  }

  /** @param {Project} project */
  #edit(project) {
    const name = el("input", { type: "text", id: "edit-name", name: "name", maxlength: "200", value: project.name });
    name.required = true;
    const about = el("textarea", { id: "edit-about", name: "about", rows: "3", maxlength: "5000" });
    about.value = project.about;
    const problem = el("div");
    const cancel = makeButton("button", () => end(), t("cancel"));
    const form = el(
      "form",
      { class: "edit-project fields" },
      el("div", { class: "field" }, el("label", { for: name.id }, t("projects.name")), name),
      el("div", { class: "field" }, el("label", { for: about.id }, t("project.about")), about),
      problem,
      el("div", { class: "row" }, cancel, el("button", { type: "submit", class: "button primary" }, t("edit.save"))),
    );
    const draft = new Draft(form);
    draft.open(`project ${project.id}`);
    const end = () => {
      draft.forget();
      form.remove();
      this.follow();
    };
    form.onsubmit = async (event) => {
      event.preventDefault();
      const key = api.makeKey();
      try {
        await api.changeProject(project.id, { name: name.value, about: about.value }, key);
        end();
        offerUndo(t("project.saved"), key);
      } catch (thrown) {
        problem.replaceChildren(renderProblem(api.toApiError(thrown)));
      }
    };
    form.onkeydown = (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      end();
    };
    this.body.querySelector(".project-head")?.replaceWith(form);
    name.focus();
  }

  /** @param {Project} project */
  async #delete({ id, name }) {
    const key = api.makeKey();
    try {
      await api.deleteProject(id, key);
      goTo({ view: "projects", query: {} });
      const back = { view: /** @type {const} */ ("projects"), id: "", query: { project: id } };
      offerUndo(t("project.deleted", { name }), key, back);
      await loadProjects();
    } catch (thrown) {
      showFailure(thrown);
    }
  }

  /**
   * Changes the parts of a project, and shows it.
   * @param {string} project @param {Parameters<typeof api.changeParts>[1]} changes @param {string} done
   */
  async #change(project, changes, done) {
    const key = api.makeKey();
    try {
      const now = await api.changeParts(project, changes, key);
      this.loads += 1;
      this.project = now;
      this.tables = this.tables.filter(({ id }) => now.tables.includes(id));
      this.#show(now);
      offerUndo(done, key);
    } catch (thrown) {
      showFailure(thrown);
    }
  }

  /** @param {string} project @param {Partial<Api.ProjectParts>} parts @param {string} name */
  #takeOut(project, parts, name) {
    const short = shortenAtWord(name, LONGEST_NAME);
    return this.#change(project, { remove: parts }, t("project.taken_out", { name: short }));
  }

  /** @param {Project} project */
  #renderRules({ id, rules }) {
    if (!rules.length) return [];
    const items = rules.map((rule) => {
      const words = describeRule(rule);
      const remove = makeIconButton("close", t("project.rule.remove", { rule: words }), () =>
        this.#change(id, { remove: { rules: [rule] } }, t("project.rule.removed")),
      );
      remove.dataset.key = words;
      return el("li", { class: "tag" }, isolate(words, { class: "tag-name" }), remove);
    });
    return [
      el("h2", {}, t("project.rules")),
      el("p", { class: "about" }, t("project.rules.about")),
      el("ul", { class: "chosen" }, items),
    ];
  }

  /** @param {Project} project */
  #renderPapers(project) {
    const { id, own, by_hand, paper_ids, missing, excluded } = project;
    const named = new Set(by_hand);
    const papers = paper_ids.flatMap((paper) => library.get().papers.get(paper) ?? []);
    const items = papers.slice(0, this.shown).map((paper) => {
      const name = getTitle(paper);
      const out = () => this.#takeOut(id, { papers: [paper.id] }, name);
      const remove = own ? makeTakeOut(paper.id, name, out) : null;
      const facts = [String(paper.year ?? ""), own && !named.has(paper.id) ? t("project.by_rule") : ""];
      return el(
        "li",
        {},
        el("a", { class: "source", href: linkTo({ view: "paper", id: paper.id, query: {} }) }, isolate(name)),
        el("span", { class: "about" }, facts.filter(Boolean).join(" · ")),
        remove,
      );
    });
    const more = papers.length - items.length;
    const showAll = () => {
      this.shown = Infinity;
      this.#show(project);
    };
    return [
      el("h2", {}, t("project.papers")),
      renderList(items, t("project.papers.none"), "none", "project-papers"),
      more > 0 ? makeButton("button quiet", showAll, t("project.papers.more", { count: more })) : null,
      ...this.#renderAbsent(t("project.missing"), missing, null),
      ...this.#renderAbsent(t("project.excluded"), excluded, id),
    ].filter((node) => node !== null);
  }

  /** Papers that it does not have now. project: which they can be put back into. */
  /** @param {string} heading @param {Api.MissingPaper[]} papers @param {string | null} project */
  #renderAbsent(heading, papers, project) {
    if (!papers.length) return [];
    const items = papers.map(({ paper, title }) => {
      const name = library.get().papers.get(paper)?.title || title || paper.slice(0, 12);
      const back = () => this.#change(project ?? "", { add: { papers: [paper] } }, t("project.saved"));
      const button = project ? makeIconButton("again", t("project.put_back", { name }), back) : null;
      if (button) button.dataset.key = paper;
      return el("li", {}, isolate(name), button);
    });
    return [el("h3", {}, heading), el("ul", { class: "project-papers absent" }, items)];
  }

  /** @param {Project} project */
  #makeTable(project) {
    openNewTable(this.root, [], ({ id }) => goTo({ view: "tables", id, query: {} }), project);
  }

  /** @param {Project} project */
  #renderTables({ id: project, own, tables }) {
    if (!own) return [];
    const items = this.tables.map((table) => {
      const { id } = table;
      const name = joinLines(table.name);
      const link = el("a", { class: "source", href: linkTo({ view: "tables", id, query: {} }) }, isolate(name));
      link.dataset.key = `table ${id}`;
      const out = () => this.#takeOut(project, { tables: [id] }, name);
      const remove = tables.includes(id) ? makeTakeOut(id, name, out) : null;
      return el("li", {}, link, el("span", { class: "about" }, describeProgress(table)), remove);
    });
    return [el("h2", {}, t("project.tables")), renderList(items, t("project.tables.none"), "none", "project-tables")];
  }

  /** @param {Project} project */
  #renderConversations({ id: project, own, conversations }) {
    if (!own) return [];
    const items = conversations.map(({ id, title }) => {
      const link = el("a", { class: "source", href: linkTo({ view: "ask", id, query: {} }) }, isolate(title));
      return el(
        "li",
        {},
        link,
        makeTakeOut(id, title, () => this.#takeOut(project, { conversations: [id] }, title)),
      );
    });
    const list = renderList(items, t("project.conversations.none"), "none", "project-conversations");
    return [el("h2", {}, t("project.conversations")), list];
  }

  /** @param {Project} project */
  #renderNotes({ id: project, notes, note_ids }) {
    if (!notes) return [];
    const put = new Set(note_ids);
    const items = this.notes
      .filter(({ id }) => put.has(id))
      .map((note) => {
        const name = nameNote(note);
        const out = () => this.#takeOut(project, { notes: [note.id] }, name);
        return el("li", {}, isolate(name), makeTakeOut(note.id, name, out));
      });
    const href = linkTo({ view: "notes", query: { project } });
    return [
      el("h2", {}, t("project.notes")),
      el("p", {}, el("a", { href }, t("project.notes.count", { count: notes }))),
      ...(items.length ? [el("h3", {}, t("project.notes.put_in")), renderList(items, "", "", "project-notes")] : []),
    ];
  }
}

/**
 * A list, or a line where it is empty.
 * @param {HTMLElement[]} items @param {string} [none] the line @param {string} [classOfNone] @param {string} [of] its class
 */
const renderList = (items, none = "", classOfNone = "none", of = "") =>
  items.length ? el("ul", { class: `project-list ${of}`.trim() }, items) : el("p", { class: classOfNone }, none);

/** @param {string} id of the part @param {string} name @param {() => void} out */
function makeTakeOut(id, name, out) {
  const button = makeIconButton("close", t("project.take_out", { name }), out);
  button.dataset.key = id;
  return button;
}

/** @param {HTMLElement} root @param {{ask: (project: string) => void}} hooks ask: a new conversation in a project */
export function setUpProjects(root, hooks) {
  const view = new ProjectsView(root, hooks);
  place.watch((now, before) => {
    if (now.view !== before.view || now.query !== before.query) view.follow();
  });
  projects.onChange(() => view.follow());
  library.onChange(() => view.follow());
  instructions.onChange(() => view.follow());
  for (const kind of /** @type {const} */ (["projects", "conversations", "notes"])) onEvent(kind, () => view.follow());
  const followSoon = atMostEvery(TABLES_MS, () => void view.follow()); // each cell that is filled is announced
  onEvent("tables", () => view.project && followSoon());
  view.follow();
}

/** The projects beside the page, above the conversations. @param {HTMLElement} side */
export function setUpProjectList(side) {
  const list = el("ul", { "aria-label": t("projects") });
  const every = el("a", { href: "#projects" }, t("projects"));
  const box = el("section", { class: "group side-projects" }, el("h2", {}, every), list);
  side.querySelector("#new")?.after(box);
  const close = () => {
    if (side.matches(":popover-open")) side.hidePopover();
  };
  every.onclick = close;
  const render = () => {
    const own = [...(projects.get()?.values() ?? [])].filter((project) => project.own).slice(0, MOST_LISTED);
    every.href = linkTo({ view: "projects", query: {} });
    list.replaceChildren(
      ...own.map(({ id, name }) => {
        const link = el("a", { href: linkToProject(id), onclick: close }, isolate(name, { class: "title" }));
        const { view, query } = place.get();
        if (view === "projects" && query.project === id) link.setAttribute("aria-current", "page");
        return el("li", {}, link);
      }),
    );
  };
  projects.watch(render);
  place.onChange(render);
}
