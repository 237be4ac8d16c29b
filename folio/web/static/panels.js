// Back closes what covers the page, as people expect on a phone: an opened panel is an entry of the browser's history.

const opened = []; // {node, close}, the outermost first
let address = ""; // of the page below them
let isGoingBack = false; // history.back() was called, and its popstate is still to come

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
  if (depth < opened.length) history.replaceState({ panels: depth }, "");
  for (let at = depth; at < opened.length; at += 1) history.pushState({ panels: at + 1 }, "");
}

/** A panel was opened that Back shall close. */
export function enterPanel(node, close) {
  if (opened.some((panel) => panel.node === node)) return;
  if (!opened.length) address = location.hash;
  opened.push({ node, close });
  matchHistory();
}

/** A panel was closed. */
export function leavePanel(node) {
  const at = opened.findIndex((panel) => panel.node === node);
  if (at < 0) return;
  opened.splice(at, 1);
  // A link or a button in it may have opened another place already, which stays, or a panel that gets its entry.
  setTimeout(matchHistory);
}

/** Puts another fragment into the address, without leaving what is open. */
export function setAddress(hash) {
  address = hash;
  history.replaceState(history.state, "", hash);
}

addEventListener("popstate", () => {
  const isOwn = isGoingBack;
  isGoingBack = false;
  const isNewPlace = history.state?.panels === undefined;
  // After a step of our own, what is open was opened meanwhile.
  const closing = isOwn ? [] : opened.splice(getDepth());
  for (const { close } of closing.reverse()) close();
  matchHistory();
  // The conversation may have got its own address meanwhile.
  if (closing.length && !isNewPlace && location.hash !== address) setAddress(address || "#ask");
});
