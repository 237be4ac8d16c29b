// What scrolls: a part of the page, or where there is little height the page as a whole. The style sheets decide.

const STILL_MS = 150; // without a change, until a place is kept

/** What scrolls a part of the page up and down: itself, or what it is in. @param {HTMLElement} part */
export function getScroller(part) {
  let node = part;
  while (node.parentElement && !/auto|scroll/.test(getComputedStyle(node).overflowY)) node = node.parentElement;
  return node;
}

/** Calls a function when a part of the page, or what it is in, has scrolled. @param {Node} part @param {() => void} run */
export function onScroll(part, run) {
  const follow = (/** @type {Event} */ { target }) => {
    if (target instanceof Node && target.contains(part)) run();
  };
  document.addEventListener("scroll", follow, { capture: true, passive: true });
}

/** What is read stays in view when another part of the page begins to scroll, as when a phone is turned. */
export function keepPlace() {
  const y = () => innerHeight / 3;
  /** @type {{node: Element, share: number} | null} what is at that height, and how much of it is above */
  let read = null;
  let timer = 0;
  const look = () => {
    const node = document.elementFromPoint(innerWidth / 2, y());
    const rect = node?.getBoundingClientRect();
    read = node && rect ? { node, share: (y() - rect.top) / rect.height } : null;
  };
  const lookSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(look, STILL_MS);
  };
  const show = () => {
    if (!(read?.node instanceof HTMLElement)) return;
    const rect = read.node.getBoundingClientRect();
    getScroller(read.node).scrollTop += rect.top + read.share * rect.height - y();
  };
  document.addEventListener("scroll", lookSoon, { capture: true, passive: true });
  matchMedia("(max-height: 499px)").addEventListener("change", show);
}
