// Where papers were read: the server learns which page is open in the reader.

import * as api from "../base/api.js";
import { place } from "../base/router.js";

const REST_MS = 1000; // a page that is passed by sooner was not read

/** @type {number | undefined} */
let timer;
let last = "";

/** A person has this page open. @param {string} paper @param {number} page */
function markRead(paper, page) {
  clearTimeout(timer);
  const key = `${paper} ${page}`;
  if (key === last) return;
  timer = setTimeout(async () => {
    last = key;
    try {
      await api.putReading(paper, page);
    } catch {
      last = ""; // a paper that was removed meanwhile, or no server: the next page is sent again
    }
  }, REST_MS);
}

/** Follows the reader. */
export function followReading() {
  place.watch(({ reading }) => {
    if (reading) markRead(reading.paper, reading.page);
    else clearTimeout(timer);
  });
}
