import type { Job, LogPiece } from "~/api/documents";
import { readPage } from "~/api/pages";
import { bytes } from "~/text/format";
import { logPage } from "./logPath";

/** Saves the log with every redraw of its progress bars, as the machine wrote it. Returns what was done. */
export async function downloadLog(job: Job): Promise<string> {
  const parts: (string | Uint8Array<ArrayBuffer>)[] = [];
  let after = 0;
  let stream = "";
  for (;;) {
    const page = await readPage<LogPiece>(logPage(job.id, after));
    for (const piece of page.items) {
      const name = `attempt ${piece.attempt}, step and try ${piece.stream}`;
      if (name !== stream) parts.push(`${stream === "" ? "" : "\n"}===== ${name} =====\n`);
      stream = name;
      parts.push(piece.data ? bytesOf(piece.data) : piece.text);
    }
    if (page.next === null || page.next === undefined) break;
    after = Number(page.next);
  }
  const file = new Blob(parts, { type: "text/plain" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${job.name.replace(/[^\w.-]+/g, "-")}-${job.id}.log`;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return `Saved ${link.download} (${bytes(file.size)})`;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
