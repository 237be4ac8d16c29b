// Sizes of files, as people read them.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** "4.7 GB". @param {number} bytes */
export function formatBytes(bytes) {
  let size = bytes;
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit > 0 && size < 9.95 ? 1 : 0;
  return `${size.toFixed(digits)} ${UNITS[unit]}`;
}
