// The view of evidence tables: their list, or one of them.

import { onEvent } from "../base/events.js";
import { atMostEvery } from "../base/pace.js";
import { goTo, place } from "../base/router.js";
import { t } from "../base/strings.js";
import { openNewTable } from "./new_table.js";
import { Sheet } from "./sheet.js";
import { TableList } from "./table_list.js";

const LIST_MS = 1500; // between two loads of the list
const PAPERS_MS = 3000; // between two loads of a table, as its papers change

/**
 * @param {HTMLElement} root
 * @returns {{create: (papers: string[]) => void}} create: opens the form of a new table, of these papers if there are any
 */
export function setUpTables(root) {
  const create = (/** @type {string[]} */ papers) =>
    void openNewTable(document.body, papers, ({ id }) => goTo({ view: "tables", id, query: {} }));
  const list = new TableList(() => create([]));
  const sheet = new Sheet(root);
  root.prepend(list.node, sheet.node);
  const follow = () => {
    const { view, id } = place.get();
    if (view !== "tables") return;
    list.node.hidden = Boolean(id);
    sheet.node.hidden = !id;
    if (id) sheet.open(id);
    else {
      sheet.close();
      document.title = `${t("tables")} · Folio`;
      list.load();
    }
  };
  const isShown = () => place.get().view === "tables";
  const loadListSoon = atMostEvery(LIST_MS, () => void (isShown() && !place.get().id && list.load()));
  place.watch(follow);
  onEvent("tables", ({ changed, deleted }) => {
    if (deleted.includes(sheet.id)) sheet.end();
    else if (changed.includes(sheet.id)) sheet.loadCellsSoon();
    loadListSoon();
  });
  const loadAgain = atMostEvery(PAPERS_MS, () => void sheet.load()); // an ingest adds many papers in a second
  for (const kind of /** @type {const} */ (["hello", "papers"])) {
    onEvent(kind, () => {
      loadAgain();
      loadListSoon();
    });
  }
  return { create };
}
