// How answers are shown: as a text, or statement by statement with its quotes.

import { recall, remember } from "../base/dom.js";
import { Value } from "../base/value.js";

/** @typedef {"prose" | "check" | ""} Mode "": as a text if a model wrote the answer */

const known = recall("answers");

/** @type {Value<Mode>} */
export const mode = new Value(/** @type {Mode} */ (known === "prose" || known === "check" ? known : ""));

mode.onChange((chosen) => remember("answers", chosen));
