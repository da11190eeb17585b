/** Files and folders that were dropped or chosen, as paths in a dataset. */

export interface LocalFile {
  /** In the dataset, with `/`. */
  readonly path: string;
  readonly file: File;
}

export interface Dropped {
  readonly files: readonly LocalFile[];
  /** Files that are not for training, with the reason. */
  readonly leftOut: readonly { readonly path: string; readonly why: string }[];
  /** The folder that was chosen, if it was one. */
  readonly folder: string | null;
}

const OF_FILE_MANAGERS = new Set(["thumbs.db", "desktop.ini", "__macosx"]);

/** What was dropped. It must be asked for while the event is handled: afterwards the browser forgets it. */
export async function readDrop(transfer: DataTransfer): Promise<Dropped> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return sorted([...transfer.files].map((file) => ({ path: file.name, file })));
  const found: LocalFile[] = [];
  for (const entry of entries) await walk(entry, found);
  return sorted(found);
}

/** What was chosen in a dialog; a folder's files know their way from it. */
export function readChosen(files: FileList): Dropped {
  return sorted([...files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
}

/** Without the folder that all files are in, and without what file managers leave behind. */
export function sorted(found: readonly LocalFile[]): Dropped {
  const folder = commonFolder(found.map((one) => one.path));
  const files: LocalFile[] = [];
  const leftOut: { path: string; why: string }[] = [];
  for (const { path, file } of found) {
    const inside = folder === null ? path : path.slice(folder.length + 1);
    if (isHidden(inside)) leftOut.push({ path: inside, why: "hidden, or a file manager’s own" });
    else files.push({ path: inside, file });
  }
  files.sort((one, other) => (one.path < other.path ? -1 : 1));
  return { files, leftOut, folder };
}

function isHidden(path: string): boolean {
  return path.split("/").some((part) => part.startsWith(".") || OF_FILE_MANAGERS.has(part.toLowerCase()));
}

function commonFolder(paths: readonly string[]): string | null {
  const first = paths[0]?.split("/") ?? [];
  const name = first.length > 1 ? first[0] : undefined;
  return name !== undefined && paths.every((path) => path.startsWith(`${name}/`)) ? name : null;
}

async function walk(entry: FileSystemEntry, found: LocalFile[]): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((take, fail) => (entry as FileSystemFileEntry).file(take, fail));
    found.push({ path: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    // A reader gives at most some hundred entries at a time.
    const some = await new Promise<FileSystemEntry[]>((take, fail) => reader.readEntries(take, fail));
    if (some.length === 0) return;
    for (const one of some) await walk(one, found);
  }
}
