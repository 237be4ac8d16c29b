// Where the keys lead in a grid: the grid pattern of the ARIA Authoring Practices

/** @typedef {{row: number, column: number}} At row: -1 for the header */

/**
 * Where a key leads; null for a key that leads nowhere.
 * @param {At} at @param {Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey">} pressed
 * @param {{rows: number, columns: number, page: number, hasHead: boolean}} grid page: rows in view
 * @returns {At | null}
 */
export function findMove({ row, column }, { key, ctrlKey, metaKey }, { rows, columns, page, hasHead }) {
  const isFar = ctrlKey || metaKey;
  const first = hasHead ? -1 : 0;
  const last = rows - 1;
  /** @type {Record<string, At>} */
  const far = {
    Home: { row: first, column: 0 },
    End: { row: last, column: columns - 1 },
    ArrowUp: { row: first, column },
    ArrowDown: { row: last, column },
    ArrowLeft: { row, column: 0 },
    ArrowRight: { row, column: columns - 1 },
  };
  /** @type {Record<string, At>} */
  const near = {
    ArrowUp: { row: row - 1, column },
    ArrowDown: { row: row + 1, column },
    ArrowLeft: { row, column: column - 1 },
    ArrowRight: { row, column: column + 1 },
    Home: { row, column: 0 },
    End: { row, column: columns - 1 },
    PageUp: { row: row < 0 ? row : Math.max(0, row - page), column },
    PageDown: { row: row + page, column },
  };
  const to = (isFar ? far : near)[key];
  if (!to) return null;
  return {
    row: Math.max(first, Math.min(last, to.row)),
    column: Math.max(0, Math.min(columns - 1, to.column)),
  };
}
