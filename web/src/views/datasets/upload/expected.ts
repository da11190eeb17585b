/** How much an upload is to have. The server knows only what was begun; this browser remembers the rest. */
export interface Expected {
  readonly files: number;
  readonly bytes: number;
}

const PREFIX = "stationmaster.upload.";

/** null: it is complete, or no longer being sent. */
export function remember(upload: string, expected: Expected | null): void {
  if (expected === null) localStorage.removeItem(PREFIX + upload);
  else localStorage.setItem(PREFIX + upload, JSON.stringify(expected));
}

export function expectedOf(upload: string): Expected | null {
  const kept = localStorage.getItem(PREFIX + upload);
  try {
    return kept === null ? null : (JSON.parse(kept) as Expected);
  } catch {
    return null; // of a version that wrote it otherwise
  }
}
