// Back closes what covers the page, as people expect on a phone: an opened panel is an entry of the browser's history.

/** @type {{node: HTMLElement, close: () => void}[]} the outermost first */
const opened = [];
let isGoingBack = false; // history.back() was called, and its popstate is still to come

/** @returns {number} */
const getDepth = () => history.state?.panels ?? 0;

/** Gives each opened panel an entry in the history, and takes the entries of closed ones away. */
function matchHistory() {
  if (isGoingBack) return;
  const depth = getDepth();
  if (depth > opened.length) {
    isGoingBack = true;
    history.back();
    return;
  }
  if (depth < opened.length) history.replaceState({ ...history.state, panels: depth }, "");
  for (let at = depth; at < opened.length; at += 1) history.pushState({ panels: at + 1 }, "");
}

/** A panel was opened that Back shall close. @param {HTMLElement} node @param {() => void} close */
export function enterPanel(node, close) {
  if (opened.some((panel) => panel.node === node)) return;
  opened.push({ node, close });
  matchHistory();
}

/** A panel was closed. @param {HTMLElement} node */
export function leavePanel(node) {
  const at = opened.findIndex((panel) => panel.node === node);
  if (at < 0) return;
  opened.splice(at, 1);
  // A link or a button in it may have opened another place already, which stays, or a panel that gets its entry.
  setTimeout(matchHistory);
}

/**
 * Closes the panels that a step back in the history has left. Returns whether the step did only that, so that the page
 * stays where it is.
 */
export function closeLeftPanels() {
  const isOwn = isGoingBack;
  isGoingBack = false;
  const isNewPlace = history.state?.panels === undefined;
  // After a step of our own, what is open was opened meanwhile.
  const closing = isOwn ? [] : opened.splice(getDepth());
  for (const { close } of closing.reverse()) close();
  matchHistory();
  return (isOwn || closing.length > 0) && !isNewPlace;
}
