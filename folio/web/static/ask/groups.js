// The list of conversations in groups: pinned ones, then by age.

/** @typedef {"pinned" | "today" | "week" | "earlier"} Group */

/** @type {Group[]} */
const ORDER = ["pinned", "today", "week", "earlier"];
const WEEK = 6; // days before today

/** @param {Date} day */
const startOf = (day) => new Date(day.getFullYear(), day.getMonth(), day.getDate());

/**
 * The groups that have a conversation, each in the order of the list.
 * @template {{pinned: boolean, updated: string}} T
 * @param {T[]} conversations @param {Date} now
 * @returns {[Group, T[]][]}
 */
export function groupByAge(conversations, now) {
  const today = startOf(now);
  const week = new Date(today);
  week.setDate(week.getDate() - WEEK);
  /** @param {T} one @returns {Group} */
  const groupOf = ({ pinned, updated }) => {
    if (pinned) return "pinned";
    const date = new Date(updated);
    if (date >= today) return "today";
    return date >= week ? "week" : "earlier";
  };
  /** @type {[Group, T[]][]} */
  const groups = ORDER.map((name) => [name, conversations.filter((one) => groupOf(one) === name)]);
  return groups.filter(([, items]) => items.length);
}
