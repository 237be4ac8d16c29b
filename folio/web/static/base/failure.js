// A request that failed where there is no place for its message: it is shown for a few seconds.

import { toApiError } from "./api.js";
import { showToast } from "./dom.js";

/** @param {unknown} thrown */
export function showFailure(thrown) {
  const { error, remedy } = toApiError(thrown);
  showToast(`${error} ${remedy}`);
}
