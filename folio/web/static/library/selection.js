// Which rows of a list are selected, and which one the keys act on.

export class Selection {
  /** @type {string[]} */
  #keys = [];
  /** @type {Map<string, number>} */
  #places = new Map();
  #anchor = ""; // where a range begins
  current = "";
  /** @type {Set<string>} */
  chosen = new Set();

  /** The rows that are shown, in their order. What is not shown is not selected. @param {string[]} keys */
  setKeys(keys) {
    this.#keys = keys;
    this.#places = new Map(keys.map((key, at) => [key, at]));
    this.chosen = new Set([...this.chosen].filter((key) => this.#places.has(key)));
    if (!this.#places.has(this.current)) this.current = keys[0] ?? "";
    if (!this.#places.has(this.#anchor)) this.#anchor = this.current;
  }

  /** The selected rows in the order of the list. */
  list() {
    return this.#keys.filter((key) => this.chosen.has(key));
  }

  /** The selected rows; the current one if none is. */
  listOrCurrent() {
    return this.chosen.size || !this.current ? this.list() : [this.current];
  }

  /** Makes a row the current one. isRange: selects what is between it and the one before. */
  /** @param {string} key @param {boolean} [isRange] */
  goTo(key, isRange = false) {
    if (!this.#places.has(key)) return;
    if (isRange) this.#selectRange(key);
    else this.#anchor = key;
    this.current = key;
  }

  /** Goes some rows down, or up. @param {number} rows @param {boolean} [isRange] */
  move(rows, isRange = false) {
    const at = (this.#places.get(this.current) ?? 0) + rows;
    this.goTo(this.#keys[Math.max(0, Math.min(this.#keys.length - 1, at))] ?? "", isRange);
  }

  /** @param {string} key */
  #selectRange(key) {
    const [one, other] = [this.#anchor, key].map((each) => this.#places.get(each) ?? 0);
    this.chosen = new Set(this.#keys.slice(Math.min(one, other), Math.max(one, other) + 1));
  }

  /** @param {string} key */
  toggle(key) {
    this.goTo(key);
    if (!this.chosen.delete(key)) this.chosen.add(key);
  }

  /** Selects this row alone. @param {string} key */
  choose(key) {
    this.goTo(key);
    this.chosen = new Set([key]);
  }

  selectAll() {
    this.chosen = new Set(this.#keys);
  }

  clear() {
    this.chosen = new Set();
    this.#anchor = this.current;
  }
}
