// A value that others watch.

/**
 * Loaded items, with the objects of before for those that have not changed, so that what is shown of them stays.
 * @template {{id: string}} T
 * @param {Iterable<T>} before @param {T[]} items @returns {T[]}
 */
export function keepUnchanged(before, items) {
  const known = new Map([...before].map((item) => [item.id, item]));
  return items.map((item) => {
    const old = known.get(item.id);
    return old && JSON.stringify(old) === JSON.stringify(item) ? old : item;
  });
}

/** @template T */
export class Value {
  /** @type {T} */
  #current;
  /** @type {Set<(value: T, before: T) => void>} */
  #listeners = new Set();

  /** @param {T} first */
  constructor(first) {
    this.#current = first;
  }

  /** @returns {T} */
  get() {
    return this.#current;
  }

  /** Sets the value, and tells all who watch it. Setting the same value again tells nobody. @param {T} value */
  set(value) {
    const before = this.#current;
    if (value === before) return;
    this.#current = value;
    for (const listener of [...this.#listeners]) listener(value, before);
  }

  /**
   * Calls the listener on each change. Returns a function that ends this.
   * @param {(value: T, before: T) => void} listener
   */
  onChange(listener) {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls the listener now and on each change. @param {(value: T, before: T) => void} listener */
  watch(listener) {
    listener(this.#current, this.#current);
    return this.onChange(listener);
  }
}
