// Every text of the page, by its key. A language is another table with the same keys.

/**
 * "{name}" stands for a value. A text that depends on a number has two forms.
 * @typedef {string | {one: string, other: string}} Text
 */

export const TEXTS = Object.freeze({
  again: "Try again",
  copied: "{what} copied.",
  "copy.refused": "The browser does not allow copying from this page.",
  page: "p. {page}",
  "page.printed": "p. {page} (printed {label})",
  pages: "pp. {first}–{last}",
  "error.connection": "Folio is not responding.",
  "error.connection.remedy": "Check that Folio is still running in its terminal, then try again.",
  "error.page": "Something went wrong in this page.",
  "error.page.remedy": "Reload it. If this happens again, please report it.",
  "error.status": "The server responded with status {status}.",
  "error.status.remedy": "The terminal that Folio runs in shows details.",
  ask: "Ask",

  // The reader
  "reader.pages": "Pages",
  "reader.feed": "Pages of the paper",
  "reader.page": "Page {page} of {pages}",
  "reader.marked": "{where}, the quote is marked.",
  "reader.of": "of {pages}",
  "reader.printed": "(printed {label})",
  "reader.number": "Page number",
  "reader.previous": "Previous page",
  "reader.next": "Next page",
  "reader.close": "Close reader",
  "reader.tabs": "Open papers",
  "reader.tab.close": "Close {title}",
  "reader.width": "Width of the reader",
  "reader.contents": "Contents",
  "reader.contents.outline": "Outline",
  "reader.contents.pages": "Pages",
  "reader.thumbnails": "Small pictures of the pages",
  "reader.no_outline": "This paper has no headings.",
  "reader.text": "Show as text",
  "reader.dark": "Dark pages",
  "reader.zoom": "Zoom",
  "reader.zoom.in": "Zoom in",
  "reader.zoom.out": "Zoom out",
  "reader.fit.text": "Fit text",
  "reader.fit.width": "Fit width",
  "reader.fit.page": "Fit page",
  "reader.unplaced": "The words of this page have no known place on its picture. This is its text:",
  "reader.quote_missing": "The quote could not be marked on this page. Look for the words yourself.",
  "reader.passage_missing": "The passage could not be marked on this page. Look for the words yourself.",
  "reader.back_to_quote": "Back to the quote on p. {page}",
  "reader.pdf": "Open PDF",
  "reader.zotero": "Open in Zotero",
  "reader.copy_citation": "Copy citation",
  "reader.copy_bibtex": "Copy BibTeX",
  "reader.citation": "Citation",
  "reader.bibtex": "BibTeX entry",
  "reader.quote": "Quote",
  "reader.link.page": "Go to page {page}",
  "reader.link.web": "Open {address}",
  "reader.link.title": "Open this link in a new tab?",
  "reader.link.open": "Open link",
  "reader.find": "Find in this paper",
  "reader.find.previous": "Previous place",
  "reader.find.next": "Next place",
  "reader.find.close": "Close find",
  "reader.find.none": "Not in this paper",
  "reader.find.hits": { one: "{at} of {count}", other: "{at} of {count}" },
  "reader.selection": "Selected words",
  "reader.ask": "Ask about this",
  "reader.ask.meaning": "What does this mean?",
  "reader.ask.elsewhere": "Where else is this said?",
  "reader.ask.disagrees": "Who disagrees?",
  "reader.ask.own": "Your question about these words",
  "reader.copy": "Copy with citation",
  "reader.copy.plain": "Plain text",
  "reader.copy.markdown": "Markdown",
  "reader.copy.latex": "LaTeX and BibTeX",
  "reader.highlight": "Highlight in {colour}",
  "reader.highlighted": "Highlighted.",
  "reader.colour.yellow": "yellow",
  "reader.colour.green": "green",
  "reader.colour.blue": "blue",
  "reader.colour.pink": "pink",
  "reader.note": "Note",
  "reader.note.open": "Note on “{words}”",
  "reader.note.words": "Your note",
  "reader.note.colour": "Colour",
  "reader.note.save": "Save note",
  "reader.note.delete": "Delete note",
  "reader.note.close": "Close note",
});

/** @typedef {keyof typeof TEXTS} Key */
/** @typedef {Record<string, string | number | Node>} Values */

/** @type {Record<string, Text>} */
const texts = TEXTS;
const numbers = new Intl.PluralRules("en");

/** @param {Key} key @param {Values} values */
function choose(key, values) {
  const text = texts[key];
  if (typeof text === "string") return text;
  return text[numbers.select(Number(values.count)) === "one" ? "one" : "other"];
}

/**
 * The text with its values. `count` chooses between the two forms of a text that has them.
 * @param {Key} key @param {Record<string, string | number>} [values]
 */
export const t = (key, values = {}) =>
  choose(key, values).replace(/\{(\w+)\}/g, (_, name) => formatValue(values[name] ?? ""));

/** @param {string | number} value */
const formatValue = (value) => (typeof value === "number" ? value.toLocaleString() : value);

/**
 * The text in parts, as children of an element: its values may be elements.
 * @param {Key} key @param {Values} values
 * @returns {(string | Node)[]}
 */
export function parts(key, values) {
  return choose(key, values)
    .split(/\{(\w+)\}/)
    .map((part, at) => {
      if (at % 2 === 0) return part;
      const value = values[part] ?? "";
      return typeof value === "object" ? value : formatValue(value);
    })
    .filter((part) => part !== "");
}
