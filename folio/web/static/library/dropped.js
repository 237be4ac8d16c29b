// The PDFs among the files and folders that were chosen or dropped.

/** @param {string} path */
const isPdf = (path) => /\.pdf$/i.test(path);
/** Such as the "._paper.pdf" that macOS puts beside a paper on other disks. @param {string} path */
const isHidden = (path) => path.split("/").some((part) => part.startsWith("."));

/** Whether this browser lets a person choose a folder. */
export const choosesFolders = () => "webkitdirectory" in HTMLInputElement.prototype;

/** The PDFs of a chosen folder and of those in it, and how many other files it has. @param {File[]} files */
export function sortFolder(files) {
  const visible = [...files].filter((file) => !isHidden(file.webkitRelativePath));
  const pdfs = visible.filter((file) => isPdf(file.name));
  return { files: pdfs, others: visible.length - pdfs.length };
}

/**
 * Starts to read what was dropped; to be called while the event is handled. Resolves to the files that were dropped
 * themselves and the PDFs of the folders, and how many other files those have. Browsers without folders give files.
 * @param {DataTransfer} transfer
 */
export function readDropped(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  return collect(items.map((item) => ({ entry: item.webkitGetAsEntry?.() ?? null, file: item.getAsFile() })));
}

/** @param {{entry: FileSystemEntry | null, file: File | null}[]} dropped */
async function collect(dropped) {
  /** @type {File[]} */
  const files = [];
  let others = 0;
  for (const { entry, file } of dropped) {
    if (!entry || !isFolder(entry)) {
      if (file) files.push(file);
      continue;
    }
    for await (const inside of walk(entry)) {
      if (isPdf(inside.name)) files.push(await new Promise((resolve, reject) => inside.file(resolve, reject)));
      else others += 1;
    }
  }
  return { files, others };
}

/** @param {FileSystemEntry} entry @returns {entry is FileSystemDirectoryEntry} */
const isFolder = (entry) => entry.isDirectory;

/** @param {FileSystemEntry} entry @returns {entry is FileSystemFileEntry} */
const isFile = (entry) => entry.isFile;

/** The files of a folder and of those in it that are not hidden. */
/** @param {FileSystemDirectoryEntry} folder @returns {AsyncGenerator<FileSystemFileEntry, void, void>} */
async function* walk(folder) {
  const reader = folder.createReader();
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!entries.length) return; // it gives some at a time
    for (const entry of entries) {
      if (isHidden(entry.name)) continue;
      if (isFolder(entry)) yield* walk(entry);
      else if (isFile(entry)) yield entry;
    }
  }
}
