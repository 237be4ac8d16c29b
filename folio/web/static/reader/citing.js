// A quote with its references, as it is copied.

import { joinLines } from "../base/text.js";

/** @typedef {{page: number, reference: string, bibtex: string}} Source a page of a paper */
/** @typedef {{text: string, sources: Source[]}} Quoted */
/** @typedef {"plain" | "markdown" | "latex"} Format */

export const FORMATS = /** @type {const} */ ([
  ["plain", "copy.plain"],
  ["markdown", "copy.markdown"],
  ["latex", "copy.latex"],
]);

/** @type {Record<string, string>} */
const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };

// Raised and lowered characters, as folio/bibliography/latex.py writes them
const RAISED = /[⁰¹²³⁴-ⁿⁱ]+|[₀-₎]+|\^(?:[\p{L}\p{N}]|\(([\p{L}\p{N}/,.+-]{2,40})\))/gu;

/** "2⁶⁴" is "2$^{64}$". @param {string} found @param {string | undefined} inner */
function setInMath(found, inner) {
  const plain = (inner ?? found.replace("^", "")).normalize("NFKC").replace("−", "-");
  return `$${/[₀-₎]/.test(found) ? "_" : "^"}{${plain}}$`;
}

/** @param {string} text */
const escapePlain = (text) => text.replace(/[\\~^{}#$%&_]/g, (char) => LATEX[char] ?? `\\${char}`);

/** @param {string} text */
function escapeLatex(text) {
  let [escaped, end] = ["", 0];
  for (const found of text.matchAll(RAISED)) {
    escaped += escapePlain(text.slice(end, found.index)) + setInMath(found[0], found[1]);
    end = found.index + found[0].length;
  }
  return escaped + escapePlain(text.slice(end));
}

/** "Reference, p. 3." for each source. @param {Quoted} quoted */
const formatReferences = ({ sources }) =>
  sources.map(({ reference, page }) => `${joinLines(reference).replace(/[.\s]+$/, "")}, p. ${page}.`).join(" ");

/** “Quote” Reference, p. 3. Without a quote, the reference alone. @param {Quoted} quoted */
const formatPlain = (quoted) =>
  [quoted.text && `“${joinLines(quoted.text)}”`, formatReferences(quoted)].filter(Boolean).join(" ");

/** As folio/bibliography/markdown.py: foreign text on one line never becomes markup. @param {string} text */
const escapeMarkdown = (text) =>
  text.replace(/[\\`*_{}[\]<>#|~$&@^]|:(?=\/\/)|(?<=www)\.|^[-+=:]/g, "\\$&").replace(/^\d{1,9}(?=[.)])/, "$&\\");

/** A quotation in Markdown. @param {Quoted} quoted */
const formatMarkdown = (quoted) =>
  `> ${escapeMarkdown(joinLines(quoted.text))}\n>\n> — ${escapeMarkdown(formatReferences(quoted))}\n`;

/** The key of a BibTeX entry; "" without one. @param {string} bibtex */
export const getKey = (bibtex) => /^\s*@\w+\s*\{\s*([^,\s}]+)/m.exec(bibtex)?.[1] ?? "";

/** A quotation in LaTeX, and the BibTeX entries that its keys name. @param {Quoted} quoted */
function formatLatex({ text, sources }) {
  const cited = sources.map(({ page, bibtex }) => `\\cite[p.~${page}]{${getKey(bibtex)}}`).join(" ");
  const entries = [...new Set(sources.map(({ bibtex }) => bibtex.trim()))].join("\n\n");
  return `\`\`${escapeLatex(joinLines(text))}''~${cited}\n\n${entries}\n`;
}

const WRITERS = { plain: formatPlain, markdown: formatMarkdown, latex: formatLatex };

/** @param {Quoted} quoted @param {Format} format */
export const formatQuoted = (quoted, format) => WRITERS[format](quoted);
