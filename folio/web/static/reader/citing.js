// A quote with its reference, as it is copied.

import { joinLines } from "../base/text.js";

/** @typedef {{text: string, page: number, reference: string, bibtex: string}} Quoted */

/** @type {Record<string, string>} */
const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };

/** @param {string} text */
const escapeLatex = (text) => text.replace(/[\\~^{}#$%&_]/g, (char) => LATEX[char] ?? `\\${char}`);

/** @param {Quoted} quoted */
const formatReference = ({ reference, page }) => `${joinLines(reference).replace(/[.\s]+$/, "")}, p. ${page}.`;

/** “Quote” Reference, p. 3. Without a quote, the reference alone. @param {Quoted} quoted */
export const formatPlain = (quoted) =>
  quoted.text ? `“${joinLines(quoted.text)}” ${formatReference(quoted)}` : formatReference(quoted);

/** As folio/bibliography/markdown.py: foreign text on one line never becomes markup. @param {string} text */
const escapeMarkdown = (text) =>
  text.replace(/[\\`*_{}[\]<>#|~$&@^]|:(?=\/\/)|(?<=www)\.|^[-+=:]/g, "\\$&").replace(/^\d{1,9}(?=[.)])/, "$&\\");

/** A quotation in Markdown. @param {Quoted} quoted */
export const formatMarkdown = (quoted) =>
  `> ${escapeMarkdown(joinLines(quoted.text))}\n>\n> — ${escapeMarkdown(formatReference(quoted))}\n`;

/** The key of a BibTeX entry; "" without one. @param {string} bibtex */
export const getKey = (bibtex) => /^\s*@\w+\s*\{\s*([^,\s}]+)/m.exec(bibtex)?.[1] ?? "";

/** A quotation in LaTeX, and the BibTeX entry that its key names. @param {Quoted} quoted */
export function formatLatex({ text, page, bibtex }) {
  const cited = `\\cite[p.~${page}]{${getKey(bibtex)}}`;
  return `\`\`${escapeLatex(joinLines(text))}''~${cited}\n\n${bibtex.trim()}\n`;
}
