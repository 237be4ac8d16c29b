// Every text of the page, by its key. A language is another table with the same keys.

/**
 * "{name}" stands for a value. A text that depends on a number has two forms.
 * @typedef {string | {one: string, other: string}} Text
 */

export const TEXTS = Object.freeze({
  again: "Try again",
  cancel: "Cancel",
  close: "Close",
  loading: "Loading",
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

  // library
  library: "Library",
  "library.papers": "Papers",
  "library.count": { one: "{count} paper", other: "{count} papers" },
  "library.some": { one: "{shown} of {count} paper", other: "{shown} of {count} papers" },
  "library.empty": "No papers yet. Papers that you add never leave this computer.",
  "library.filter": "Find by title, author, year, venue, file or subject",
  "library.filter.label": "Find papers",
  "library.sort": "Sort by",
  "library.sort.by": "Sort by {name}",
  "library.select": "Select {name}",
  "library.select.all": "Select all",
  "library.selected": "{count} selected",
  "library.actions": "Actions",
  "library.ask": { one: "Ask this paper", other: "Ask these papers" },
  "library.tags": "Tags",
  "library.clear": "Clear",
  "library.unsure": "Not sure",
  "library.unread": "Unread",
  "library.read": "p. {page} of {of}",
  "column.title": "Title",
  "column.authors": "Authors",
  "column.year": "Year",
  "column.venue": "Venue",
  "column.tags": "Tags",
  "column.added": "Added",
  "column.state": "State",
  "field.title": "title",
  "field.authors": "authors",
  "field.year": "year",
  "field.venue": "venue",
  "field.doi": "DOI",
  "export.bibtex": "Export BibTeX",
  "export.bibtex.of": { one: "Export BibTeX of {count} paper", other: "Export BibTeX of {count} papers" },
  "export.csl": "Export CSL-JSON",
  "export.csl.of": { one: "Export CSL-JSON of {count} paper", other: "Export CSL-JSON of {count} papers" },
  "facet.all": "Filters",
  "facet.clear": "Clear filters",
  "facet.show": "Show only",
  "facet.unsure": "Not sure",
  "facet.retracted": "Retracted",
  "facet.unread": "Unread",
  "facet.years": "Years",
  "facet.year": "year",
  "facet.from": "From year",
  "facet.to": "To year",
  "facet.author": "Author",
  "facet.author.more": "{count} more authors",
  "facet.venue": "Venue",
  "facet.venue.more": "{count} more venues",
  "facet.tag": "Tag",
  "facet.tag.more": "{count} more tags",
  "facet.collection": "Collection",
  "facet.collection.more": "{count} more collections",
  "facet.rest": { one: "{count} more: type its name above.", other: "{count} more: type a name above." },
  related: "Related papers",
  "related.words": "its words: {words}",
  "related.text": "in the text: {place}",
  "related.similar": "a similar subject",
  failures: "Files that could not be read",
  "failures.count": { one: "{count} file could not be read", other: "{count} files could not be read" },
  between: "Papers in your library that cite each other",
  "between.cited": { one: "cited by {count} paper here", other: "cited by {count} papers here" },
  "between.cites": "cites",
  remove: "Remove",
  "remove.title": { one: "Remove this paper?", other: "Remove these papers?" },
  "remove.text": {
    one: "{name} will be removed from the index. You can bring it back for a day. {files}",
    other: "{name} will be removed from the index. You can bring them back for a day. {files}",
  },
  "remove.files": "A file in your papers folder is moved to {folder}; one elsewhere stays where it is.",
  undo: "Undo",
  removed: "Removed today",
  "removed.count": "Removed today: {count}",
  "removed.moved": "Removed. The file is now {place} in your papers folder.",
  "removed.left": "Removed. The file was not moved.",
  "removed.many": { one: "{count} paper removed.", other: "{count} papers removed." },
  restore: "Bring back",
  "restore.doing": "Bringing it back. It is read again, which may take a moment.",
  "restore.done": "{name}: back in your library.",
  edit: "Edit",
  "edit.save": "Save",
  "edit.saved": "Saved.",
  "edit.reset": "Undo my edit",
  "edit.title": "Title",
  "edit.authors": "Authors",
  "edit.authors.hint": "One on each line: Family, Given. An organisation in braces: {European Union}.",
  "edit.year": "Year",
  "edit.year.hint": "Four digits, such as 2014",
  "edit.venue": "Journal, conference or university",
  "edit.doi": "DOI",
  "edit.tags": "Tags",
  "edit.tags.hint": "One on each line.",
  "edit.unsure": "{origin}, not sure.",
  "origin.none": "Not known",
  "origin.page": "From its first pages",
  "origin.pdf": "From the file’s metadata",
  "origin.identifier": "From its identifier",
  "origin.date": "From the file’s date",
  "origin.cited": "Guessed from the works that it cites",
  "origin.name": "From the file’s name",
  "origin.arxiv": "From arXiv",
  "origin.openalex": "From OpenAlex",
  "origin.crossref": "From Crossref",
  "origin.semanticscholar": "From Semantic Scholar",
  "origin.bibliography": "From your bibliography",
  "origin.zotero": "From Zotero",
  "origin.person": "Your edit",
  "bulk.add": "Add tags",
  "bulk.hint": "Separated by commas.",
  "bulk.tags": "Tags that they have",
  "bulk.share": "{some} of {all}",
  "bulk.tags.title": { one: "Tags of {count} paper", other: "Tags of {count} papers" },
  "bulk.fields.title": { one: "Edit {count} paper", other: "Edit {count} papers" },
  "bulk.empty": "What you leave empty stays as it is.",
  "bulk.saved": { one: "{count} paper changed.", other: "{count} papers changed." },
  "check.open": { one: "Check this {count}", other: "Check these {count}" },
  "check.title": { one: "Check {count} paper", other: "Check {count} papers" },
  "check.place": "{at} of {of}",
  "check.fields": "What is known of it",
  "check.page": "Its first page",
  "check.picture": "First page of {name}",
  "check.save": "Save and next",
  "check.skip": "Skip",
  "check.keys": "Ctrl+Enter saves, Alt+S skips. To save confirms what is not sure.",
  "check.leave": "Back to the library",
  "check.done": "Nothing is left to check.",
  uploads: "Papers being added",
  "uploads.drop": "Drop PDFs or folders here, or {choose}",
  "uploads.choose": "choose files",
  "uploads.folder": "Choose a folder",
  "uploads.limit": "Up to {most} MB each. They are saved in your papers folder.",
  "uploads.progress": "Papers added",
  "uploads.waiting": "Waiting",
  "uploads.sending": "Sending",
  "uploads.stopping": "Stopping",
  "stage.reading": "Reading",
  "stage.embedding": "Embedding",
  "stage.embedding.of": {
    one: "Embedding {done} of {count} passage",
    other: "Embedding {done} of {count} passages",
  },
  "uploads.dismiss": "Dismiss {name}",
  "uploads.cancel": "Cancel {name}",
  "uploads.again.of": " to add {name}",
  "uploads.added": { one: "Added: {name}, {count} page.", other: "Added: {name}, {count} pages." },
  "uploads.duplicate": "Already in the library as {name}.",
  "uploads.unchanged": "Already in the library, unchanged: {name}.",
  "uploads.all": { one: "{count} paper added", other: "{count} papers added" },
  "uploads.some": { one: "{added} of {count} paper added", other: "{added} of {count} papers added" },
  "uploads.failed": "{all}, {count} failed: {error}",
  "uploads.away": "Folio is not responding. Files that it has are safe; the others are sent when it is back.",
  "uploads.large": "The file is larger than {most} MB.",
  "uploads.large.remedy": "Raise the setting MAX_FILE_MB to add it.",
  "uploads.unreadable": "The file cannot be read.",
  "uploads.unreadable.remedy": "Choose it again.",
  "uploads.cut": "The connection was cut {count} times while the file was sent, though Folio responds.",
  "uploads.cut.remedy":
    "A proxy may limit the size of a file. Raise its limit, or put the file into your papers folder.",
  "uploads.none": "There are no PDFs in that folder.",
  "uploads.others": {
    one: "{count} file left out: only PDFs are added.",
    other: "{count} files left out: only PDFs are added.",
  },
  "uploads.folder.unreadable": "A dropped folder cannot be read. Choose its files.",

  // paper
  paper: "Paper",
  "paper.pages": { one: "{count} page", other: "{count} pages" },
  "paper.unsure": "Not sure: {names}",
  "paper.names": "Collections and tags",
  "paper.read": "Read",
  "paper.continue": "Continue at p. {page}",
  "paper.ask": "Ask this paper",
  "paper.bibtex": "BibTeX entry",
  "paper.bibtex.copy": "Copy BibTeX",
  "paper.citation": "Citation",
  "paper.citation.copy": "Copy citation",
  "paper.pdf": "Open PDF",
  "paper.abstract": "Abstract",
  "paper.about": "What it is about",
  "about.claim": "Claim",
  "about.method": "Method",
  "about.result": "Result",
  "about.limits": "Limits",
  "paper.outline": "Outline",
  "paper.notes.title": "Notes",
  "paper.notes": { one: "{count} note", other: "{count} notes" },
  "paper.conversations": "Conversations that cite it",
  "paper.cited": "Cited here by",
  "paper.similar": "Similar papers",
  "paper.references": "References",
  "paper.references.count": {
    one: "{count} reference on its pages, {here} in your library.",
    other: "{count} references on its pages, {here} in your library.",
  },
  "paper.references.all": "Show all {count}",
  citations: "Citations at services",
  "citations.references": "References",
  "citations.citing": "Cited by",
  "citations.look": "Look up references",
  "citations.again": "Look up again",
  "citations.asking": "Looking up references and citing works",
  "citations.none": "What this paper cites has not been looked up yet.",
  "citations.counts": "{references}, cited by {works}, among the works looked up.",
  "citations.reference.count": { one: "{count} reference", other: "{count} references" },
  "citations.work.count": { one: "{count} work", other: "{count} works" },
  "citations.unnamed": {
    one: "{count} work known only by identifier",
    other: "{count} works known only by identifier",
  },
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
const formatValue = (value) => (typeof value === "number" ? formatNumber(value) : value);

const written = new Intl.NumberFormat();

/** @param {number} number */
export const formatNumber = (number) => written.format(number);

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
