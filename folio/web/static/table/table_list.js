// The list of tables.

import * as api from "../base/api.js";
import { el, formatDate, hideVisually, isolate, makeButton, makeIcon, renderProblem } from "../base/dom.js";
import { showFailure } from "../base/failure.js";
import { inTurn, oneAtATime } from "../base/pace.js";
import { linkTo } from "../base/router.js";
import { t } from "../base/strings.js";
import { joinLines } from "../base/text.js";
import { offerUndo } from "../base/undo.js";

/** @typedef {Api.TableSummaryJson} Summary */

/** How far a table is. @param {Pick<Summary, "found" | "not_found" | "waiting" | "failed" | "filling">} table */
export function describeProgress({ found, not_found, waiting, failed, filling }) {
  const all = found + not_found + waiting + failed;
  if (filling) return t("tables.filling", { done: all - waiting, count: all });
  return [
    t("tables.found", { found, count: all }),
    waiting ? t("tables.left", { count: waiting }) : "",
    failed ? t("tables.failed.count", { count: failed }) : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Deletes a table, with a message that offers to bring it back. Throws ApiError. @param {{id: string, name: string}} table */
export async function deleteTable({ id, name }) {
  const key = api.makeKey();
  await api.deleteTable(id, key);
  offerUndo(t("tables.deleted", { name }), key, { view: "tables", id, query: {} });
}

export class TableList {
  /** @param {() => void} create opens the form of a new table */
  constructor(create) {
    this.status = el("p", { class: "status", role: "status" });
    const add = makeButton("button primary", create, makeIcon("plus"), t("tables.new"));
    const head = el(
      "div",
      { class: "view-head" },
      el("h1", {}, t("tables")),
      this.status,
      el("span", { class: "gap" }),
      add,
    );
    this.problem = el("div");
    this.lead = el("p", { class: "lead", hidden: true }, t("tables.lead"));
    this.list = el("ul", { class: "tables-list", "aria-label": t("tables") });
    const reading = el("div", { class: "reading wide" }, head, this.problem, this.lead, this.list);
    this.node = el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": t("tables") }, reading);
  }

  load = inTurn(async () => {
    try {
      const { tables } = await api.listTables();
      this.problem.replaceChildren();
      this.#render(tables);
    } catch (thrown) {
      this.problem.replaceChildren(renderProblem(api.toApiError(thrown), () => this.load()));
    }
  });

  /** @param {Summary[]} tables */
  #render(tables) {
    const active = document.activeElement;
    const focused = this.list.contains(active) ? active?.closest("li")?.getAttribute("data-id") : "";
    const kind = active?.matches("a") ? "a" : "button";
    this.status.textContent = tables.length ? t("tables.count", { count: tables.length }) : "";
    this.lead.hidden = tables.length > 0;
    this.list.replaceChildren(...tables.map((table) => this.#renderItem(table)));
    if (!focused) return;
    /** @type {HTMLElement | null} */
    const again = this.list.querySelector(`li[data-id="${focused}"] ${kind}`) ?? this.list.querySelector("a");
    again?.focus({ preventScroll: true });
  }

  /** @param {Summary} table */
  #renderItem(table) {
    const { id, name, rows, columns, updated } = table;
    const size = `${t("ask.papers", { count: rows })}, ${t("tables.columns.count", { count: columns })}`;
    const remove = oneAtATime(async () => {
      try {
        await deleteTable(table);
      } catch (thrown) {
        showFailure(thrown);
      }
      await this.load();
    });
    return el(
      "li",
      { "data-id": id },
      el("a", { class: "source", href: linkTo({ view: "tables", id }) }, isolate(joinLines(name))),
      el("p", { class: "about" }, [size, describeProgress(table), formatDate(updated)].join(" · ")),
      makeButton("button quiet", remove, makeIcon("delete"), t("tables.delete"), hideVisually(`: ${joinLines(name)}`)),
    );
  }
}
