// Steps through the citations of the answer in view, by keys.

/** The turn that is in the middle of the view; the last one without any. @param {HTMLElement[]} turns */
function findTurn(turns) {
  const middle = innerHeight / 2;
  const isAtMiddle = (/** @type {HTMLElement} */ turn) => {
    const { top, bottom } = turn.getBoundingClientRect();
    return top <= middle && bottom >= middle;
  };
  return turns.find(isAtMiddle) ?? turns.at(-1);
}

/**
 * Opens the next citation of the answer in view, or with by -1 the previous one. Returns whether there is one.
 * @param {HTMLElement} view @param {number} by
 */
export function stepThroughCitations(view, by) {
  if (view.hidden) return false;
  /** @type {HTMLElement[]} */
  const turns = [...view.querySelectorAll(/** @type {"div"} */ (".turn"))];
  /** @param {HTMLElement | undefined} turn @returns {HTMLElement[]} */
  const listChips = (turn) => (turn ? [...turn.querySelectorAll(/** @type {"div"} */ (".sentences .chip"))] : []);
  const isCurrent = (/** @type {HTMLElement} */ chip) =>
    chip.classList.contains("shown") || chip === document.activeElement;
  const current = turns.flatMap(listChips).find(isCurrent);
  const chips = listChips(current?.closest(/** @type {"div"} */ (".turn")) ?? findTurn(turns));
  const at = current ? chips.indexOf(current) + by : by > 0 ? 0 : chips.length - 1;
  const next = chips[(at + chips.length) % chips.length];
  if (!next) return false;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  next.click();
  return true;
}
