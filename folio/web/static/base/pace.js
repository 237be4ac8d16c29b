// How often something is done.

/**
 * A function that does something unless it is being done: a button that is pressed twice does it once.
 * @template {unknown[]} A @template T
 * @param {(...given: A) => Promise<T>} run
 */
export function oneAtATime(run) {
  /** @type {Promise<T> | null} */
  let running = null;
  return (/** @type {A} */ ...given) => {
    running ??= run(...given).finally(() => (running = null));
    return running;
  };
}

/**
 * A function that loads now or, while it loads, once more afterwards. So replies do not overtake each other, and what is
 * shown in the end was asked for after the last call. It throws what the last load throws.
 * @param {() => Promise<void>} load
 */
export function inTurn(load) {
  /** @type {Promise<void> | null} */
  let running = null;
  let isWanted = false;
  const run = async () => {
    try {
      await load();
    } catch (thrown) {
      if (!isWanted) {
        running = null;
        throw thrown;
      }
    }
    if (!isWanted) {
      running = null;
      return;
    }
    isWanted = false;
    await run();
  };
  return () => {
    isWanted = running !== null;
    running ??= run();
    return running;
  };
}

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
