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
  "ask.name": "Ask",
  "ask.conversation": "Conversation",
  "ask.questions": { one: "{count} question", other: "{count} questions" },
  "ask.papers": { one: "{count} paper", other: "{count} papers" },
  "ask.papers.more": { one: "{count} more paper", other: "{count} more papers" },
  "ask.passages": { one: "{count} passage", other: "{count} passages" },
  "ask.pages": { one: "{count} page", other: "{count} pages" },
  "ask.statements": { one: "{count} statement", other: "{count} statements" },
  "ask.seconds": "{seconds} s",
  "ask.or": " or ",
  "ask.cancel": "Cancel",
  "ask.export": "Export Markdown",
  "ask.loading": "Loading the conversation",
  "ask.not_ready": "Folio is not ready",
  "ask.busy": "Wait for the answer, or stop it.",
  "ask.deleted.elsewhere": "This conversation was deleted elsewhere.",
  // The start
  "ask.welcome": "What do you want to know?",
  "ask.welcome.text":
    "Ask about {papers}. Every sentence of an answer cites a page. Select the citation to open that page with the " +
    "quote marked.",
  "ask.key.question": "to write a question",
  "ask.key.views": "to switch views",
  "ask.key.pages": "to turn pages",
  "ask.key.close": "to close a page",
  "ask.first": "Add your papers first",
  "ask.first.text":
    "Folio answers questions from your PDFs and cites the page for every sentence. Nothing leaves this computer.",
  "ask.drop": "Drop PDFs or folders here, or {choose}",
  "ask.drop.choose": "choose files",
  "ask.drop.note": "Up to {megabytes} MB each. A paper takes a few seconds.",
  "ask.suggestions": "Suggested questions",
  "ask.examples": "Questions that your papers answer",
  "ask.followups": "Ask next",
  // The list of conversations
  "ask.list": "Conversations",
  "ask.new": "New conversation",
  "ask.list.find": "Find a conversation",
  "ask.list.none": "No conversations yet.",
  "ask.list.nothing": "No conversation has these words.",
  "ask.list.count": { one: "{count} conversation", other: "{count} conversations" },
  "ask.list.pinned": "Pinned",
  "ask.list.today": "Today",
  "ask.list.week": "This week",
  "ask.list.earlier": "Earlier",
  "ask.list.more": "Change “{title}”",
  "ask.list.menu": "Change this conversation",
  "ask.list.rename": "Rename",
  "ask.list.title": "Title of the conversation",
  "ask.list.pin": "Pin",
  "ask.list.unpin": "Unpin",
  "ask.list.delete": "Delete",
  "ask.list.delete.title": "Delete this conversation?",
  "ask.list.delete.text": "“{title}” and its answers will be deleted. Your papers stay.",
  // The question
  "ask.question": "Your question",
  "ask.placeholder": "Ask your papers",
  "ask.hint": "{enter} to ask, {line} for a new line",
  "ask.send": "Ask",
  "ask.stop": "Stop",
  "ask.options": "Options",
  "ask.model": "Model",
  "ask.model.title": "The model that answers",
  "ask.model.builtin": "Quotes (built in)",
  "ask.model.default": "Default model",
  "ask.deep": "Deep search",
  "ask.deep.note": "Scores passages and searches again if they say too little. Takes longer, up to minutes.",
  "ask.words": "Words that the question is about",
  "ask.words.remove": "Remove the selected words",
  "ask.ready.meaning": "What does this mean?",
  "ask.ready.elsewhere": "Where else is this said?",
  "ask.ready.disagrees": "Who disagrees?",
  "ask.papers.only": "Ask only these papers",
  "ask.papers.find": "Find a paper",
  "ask.papers.type": { one: "{count} more paper. Type to find it.", other: "{count} more papers. Type to find them." },
  "ask.papers.none": "No paper matches.",
  "ask.papers.empty": "No papers yet.",
  "ask.papers.removed": "The paper you were asking about was removed. Questions now go to all papers.",
  "ask.year": "Years",
  "ask.year.example": "2014 or 2020-",
  "ask.author": "Author",
  "ask.author.example": "Ongaro",
  "ask.venue": "Venue",
  "ask.venue.example": "USENIX",
  "ask.section": "Section",
  "ask.section.example": "methods",
  "ask.collection": "Collection",
  "ask.collection.example": "Consensus",
  "ask.tag": "Tag",
  "ask.tag.example": "to read",
  "ask.cited_by": "Cited by",
  "ask.cited_by.example": "RAG survey",
  "ask.style": "Style",
  "ask.style.plain": "Plain answer",
  "ask.style.report": "Report with headings",
  "ask.top_k": "Passages to use",
  "ask.default": "default",
  "ask.rerank": "Rerank passages",
  "ask.tag.report": "report",
  "ask.tag.not_reranked": "not reranked",
  "ask.tag.remove": "Remove: {name}",
  // A turn
  "ask.searching": "Searching your papers",
  "ask.searching.heard": "Searching your papers.",
  "ask.reading": "Reading {passages} of {where}",
  "ask.reading.heard": "Reading {passages}.",
  "ask.thinking": "{model} is thinking",
  "ask.thinking.heard": "The model is thinking.",
  "ask.checking": { one: "Checking {count} more statement", other: "Checking {count} more statements" },
  "ask.answered": { one: "Answered, with {count} citation.", other: "Answered, with {count} citations." },
  "ask.stopping": "Keeping what was written",
  "ask.stopped": "You stopped this answer. It is not part of the conversation.",
  "ask.stopped.kept": "What it had shown is kept.",
  "ask.stopped.heard": "Stopped. What was shown is kept.",
  "ask.again": "Ask again",
  "ask.again.with": "Ask again with",
  "ask.back": "Back to the earlier answer",
  "ask.edit": "Edit this question",
  "ask.edit.label": "Edited question",
  "ask.edit.note": "The earlier question and what followed it are kept as another branch.",
  "ask.branches": "Branches of the conversation",
  "ask.branch": "{at} of {all}",
  "ask.branch.previous": "Previous branch",
  "ask.branch.next": "Next branch",
  "ask.understood": "Understood as: {question}",
  "ask.mode": "Show quotes",
  "ask.mode.title": "Each statement by itself with its quotes, or the answer as a text",
  "ask.copy": "Copy",
  "ask.copy_zotero": "Copy Zotero note",
  "ask.copy.answer": "Answer",
  "ask.copy.zotero": "Zotero note",
  "ask.copy.words": "Words and citation",
  "ask.good": "Good",
  "ask.bad": "Bad",
  "ask.rated.answer": " answer",
  "ask.rated.good": "Rated as a good answer.",
  "ask.rated.bad": "Rated as a bad answer.",
  // What was searched
  "ask.scope": "Asked only: ",
  "ask.scope.year": "years {values}",
  "ask.scope.author": "author {values}",
  "ask.scope.venue": "venue {values}",
  "ask.scope.section": "section {values}",
  "ask.scope.collection": "collection {values}",
  "ask.scope.tag": "tag {values}",
  "ask.scope.cited_by": "cited by {values}",
  "ask.only_these": "Only these were searched: ",
  "ask.all": "Ask all papers",
  // Statements and citations
  "ask.cited.open": ": open the page",
  "ask.flagged": "Warning: this answer cites {name}: {notice}.",
  "ask.in_place": "In place of a statement that the papers do not support:",
  "ask.against": "But {chip} says otherwise: {words}",
  "ask.reworded": "Reworded: ",
  "ask.reworded.means": "in the model's own words; the quote stands beneath. {checked}",
  "ask.reworded.prose": "in the model's own words; each citation shows its quote. {checked}",
  "ask.checked": "Checked by {names}.",
  "ask.checked.none": "Not checked by a verifier.",
  "ask.checked.some": "{unchecked} of {all} not checked by a verifier, the others by {names}.",
  "ask.left_out": { one: "{count} statement left out", other: "{count} statements left out" },
  "ask.left_out.means": "The papers do not support these statements of the model:",
  "ask.left_out.reason": "Reason: {reason}",
  "ask.dropped": {
    one: "{count} unsupported sentence was left out.",
    other: "{count} unsupported sentences were left out.",
  },
  "ask.card": "Quote",
  "ask.card.open": "Open",
  "ask.note": "Note",
  "ask.note.kept": "The statement and its quotes are in your notes.",
  "ask.note.quote_kept": "The quote is in your notes.",
  "ask.selected": "Selected words",
  "ask.selected.ask": "Ask about this",
  "ask.selected.copy": "Copy with citation",
  // Sources
  "ask.may_not_answer": "These are about the topic, and may not answer the question.",
  "ask.closest": "No passage answers this well enough to be quoted. These come closest:",
  "ask.sources": "Sources",
  "ask.sources.size": "{pages} in {papers}",
  "ask.verbatim": "word for word",
  "ask.support": "support {support}",
  "ask.zotero.open": "Open in Zotero",
  "ask.references": "Key references",
  "ask.page_list": "pp. {pages}",
  "ask.page_list.one": "p. {pages}",
  "ask.authors": "{others} and {last}",
  "ask.authors.many": "{first} et al.",
  // The evidence of a deep answer
  "ask.profile": "About the evidence",
  "ask.profile.agree": "Where the papers agree",
  "ask.profile.differ": "Where they differ",
  "ask.profile.open": "Open questions",
  "ask.profile.but": "but",
  "ask.profile.above": " quoted above",
  "ask.profile.compared": "{model} chose which quotes belong together: read them.",
  "ask.profile.rests": "{statements} from {papers};",
  "ask.profile.read": "{relevant} of {passages} relevant.",
  "ask.profile.confidence": "Confidence: {level}. In tests {share} of such answers showed what was asked for.",
  "ask.profile.year": "papers of {last}",
  "ask.profile.years": "papers of {first} to {last}",
  "ask.profile.no_year": { one: "{count} paper without a sure year", other: "{count} papers without a sure year" },
  "ask.profile.age": "Age: {age}.",
  // A deep search
  "ask.deep.reformulate": "Searched again in other words",
  "ask.deep.expand": "Read what the best papers cite",
  "ask.deep.offset": "Searched again for the papers that come next",
  "ask.deep.searched": "Searched",
  "ask.deep.ended": "Search ended",
  "ask.deep.writing": "Writing the answer",
  "ask.deep.scoring": "Scoring passages",
  "ask.deep.round": "round {round}, ",
  "ask.deep.read": "{passages} read, {relevant} relevant",
  "ask.deep.calls": { one: "{count} model call", other: "{count} model calls" },
  "ask.deep.rounds": { one: "{count} round", other: "{count} rounds" },
  "ask.deep.scores": "{rounds}. Scores: {assessor}",
  "ask.deep.unchecked": ". {sign} is the model's own summary: it is not checked, and no answer quotes it.",
  "ask.deep.cited": { one: "{count} cited paper", other: "{count} cited papers" },
  "ask.deep.for": "For {part}",
  "ask.deep.low": {
    one: "{count} passage with a score below {score}",
    other: "{count} passages with a score below {score}",
  },
  "ask.deep.no_score": "no score",
  "ask.deep.score": "Score ",
  "ask.deep.summary": "Model's summary: ",
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
