// Statements and quotes of answers that are kept as notes.

import * as api from "../base/api.js";
import { showToast } from "../base/dom.js";
import { t } from "../base/strings.js";
import { joinLines } from "../base/text.js";
import { showFailure } from "../base/failure.js";

/** @typedef {import("./origin.js").Origin} Origin */

/** @param {import("./origin.js").Quote} quoted @returns {Api.SpanOfPaper | Api.WordsOfPaper} */
function toPlace({ paper, span, quote, page }) {
  return span ? { paper, start: span[0], end: span[1], quote } : { paper, quote, page };
}

/** Keeps a statement, or a quote alone, as a note. @param {Origin} origin */
export async function keepNote({ statement, quotes, answered: { conversation, turn } }) {
  const places = new Map(quotes.map((quoted) => [`${quoted.paper} ${quoted.page} ${quoted.quote}`, toPlace(quoted)]));
  try {
    await api.addNote({ quotes: [...places.values()], statement: joinLines(statement), conversation, turn });
    showToast(t(statement ? "ask.note.kept" : "ask.note.quote_kept"));
  } catch (thrown) {
    showFailure(thrown);
  }
}
