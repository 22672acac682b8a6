// Two ways of calling a function less often than it is asked for.

/**
 * Calls `work` once the calls have been quiet for `wait` milliseconds, with the latest arguments.
 * The returned function has `flush()`, which calls at once if a call is due, and `cancel()`.
 */
export function debounce(work, wait) {
  let timer = null;
  let latest = null;

  function run() {
    timer = null;
    const args = latest;
    latest = null;
    return work(...args);
  }

  function debounced(...args) {
    latest = args;
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(run, wait);
  }

  debounced.flush = () => {
    if (timer === null) return undefined;
    clearTimeout(timer);
    return run();
  };

  debounced.cancel = () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    latest = null;
  };

  return debounced;
}

/** Calls `work` at most once every `interval` milliseconds; the last call of a burst is never lost. */
export function throttle(work, interval) {
  let last = -Infinity;
  let trailing = null;

  return (...args) => {
    const now = performance.now();
    const due = last + interval - now;
    if (trailing !== null) clearTimeout(trailing);
    if (due <= 0) {
      last = now;
      work(...args);
      return;
    }
    trailing = setTimeout(() => {
      last = performance.now();
      trailing = null;
      work(...args);
    }, due);
  };
}
