// How often something is done.

/** A function that calls another now, or later so that it is not called more often than this. */
/** @param {number} ms @param {() => void} run */
export function atMostEvery(ms, run) {
  let isResting = false;
  let isWanted = false;
  return function call() {
    isWanted = isResting;
    if (isResting) return;
    isResting = true;
    setTimeout(() => {
      isResting = false;
      if (isWanted) call();
    }, ms);
    run();
  };
}
