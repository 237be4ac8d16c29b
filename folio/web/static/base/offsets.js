// Where the items of a long list lie: their heights one above the other, without an element for each.

export class Offsets {
  /** @param {number[]} heights pixels, from the top */
  constructor(heights) {
    this.heights = heights;
    this.tops = new Float64Array(heights.length + 1);
    this.#sum(0);
  }

  /** @param {number} first */
  #sum(first) {
    for (let at = first; at < this.heights.length; at += 1) this.tops[at + 1] = this.tops[at] + this.heights[at];
  }

  get count() {
    return this.heights.length;
  }

  /** Pixels of all items. */
  get total() {
    return this.tops[this.count];
  }

  /** Sets the heights of some items, by their places. @param {Map<number, number>} heights */
  change(heights) {
    for (const [at, height] of heights) this.heights[at] = height;
    if (heights.size) this.#sum(Math.min(...heights.keys()));
  }

  /** The place of the item at a height; the last one below the list, 0 above it. @param {number} y pixels */
  indexAt(y) {
    let [low, high] = [0, Math.max(0, this.count - 1)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /**
   * The items [first, end) between two heights, and those less than `margin` outside.
   * @param {number} top @param {number} bottom @param {number} [margin] pixels
   * @returns {[number, number]}
   */
  range(top, bottom, margin = 0) {
    if (!this.count || bottom + margin <= 0) return [0, Math.min(1, this.count)];
    return [this.indexAt(Math.max(0, top - margin)), this.indexAt(bottom + margin) + 1];
  }
}
