// A value that others watch.

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
