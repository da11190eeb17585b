/** One file on its way: in pieces, from where the last answer says that it goes on. */
import { api } from "~/api/client";
import type { DatasetProblem, UploadedFile } from "~/api/documents";
import { type Problem, problemOf } from "~/api/problem";
import type { LocalFile } from "./dropped";

const PIECE_BYTES = 4 << 20;
const MOST_HASHED_BYTES = 64 << 20;
/** A file up to this size is sent again: a corrected caption may be as long as it was. */
const SENT_AGAIN_BYTES = 64 << 10;

export interface Sending {
  readonly upload: string;
  readonly local: LocalFile;
  /** What the server has of a file with this path; null: nothing. */
  readonly there: UploadedFile | null;
  readonly onProgress: (received: number) => void;
  /** Asked between pieces: a piece that is on its way arrives. */
  readonly isPaused: () => boolean;
}

/** The upload was paused; what has arrived stays. */
export class Paused extends Error {}

/** Send what is missing; returns what is wrong with the file. Throws a Problem, or Paused. */
export async function send(sending: Sending): Promise<readonly DatasetProblem[]> {
  const { local, there, onProgress } = sending;
  const isSame = there !== null && there.size === local.file.size;
  if (isSame && there.complete && there.size > SENT_AGAIN_BYTES) {
    onProgress(there.size);
    return [];
  }
  const offset = isSame && !there.complete ? there.received : 0;
  try {
    return await sendFrom(sending, offset);
  } catch (error) {
    // Of the same size, but another file than the one that was begun: all of it is sent anew.
    if (offset === 0 || !isOtherContent(error)) throw error;
    return await sendFrom(sending, 0);
  }
}

async function sendFrom(sending: Sending, start: number): Promise<readonly DatasetProblem[]> {
  const { file } = sending.local;
  // Only a file that goes on needs the proof that its beginning is of the same file.
  const sha256 = start > 0 ? await hashOf(file) : null;
  let offset = start;
  for (;;) {
    if (sending.isPaused()) throw new Paused();
    const end = Math.min(offset + PIECE_BYTES, file.size);
    const piece = await put(sending, file.slice(offset, end), rangeOf(offset, end, file.size), sha256);
    if ("continueAt" in piece) {
      offset = piece.continueAt;
      continue;
    }
    sending.onProgress(piece.received);
    if (piece.complete) return piece.problems ?? [];
    offset = piece.received;
  }
}

/** Without a range the file is sent as a whole, which drops what arrived before. */
function rangeOf(offset: number, end: number, size: number): string | null {
  if (offset === 0 && end === size) return null;
  return offset === size ? `bytes */${size}` : `bytes ${offset}-${end - 1}/${size}`;
}

async function put(
  { upload, local }: Sending,
  body: Blob,
  range: string | null,
  sha256: string | null,
): Promise<UploadedFile | { continueAt: number }> {
  const headers: Record<string, string> = { "Content-Type": "application/octet-stream" };
  if (range !== null) headers["Content-Range"] = range;
  if (sha256 !== null) headers["Content-SHA256"] = sha256;
  const { data, error, response } = await api.PUT("/api/datasets/{upload}/files/{path}", {
    params: { path: { upload, path: local.path } },
    headers,
    body: body as unknown as string,
    bodySerializer: (blob) => blob as unknown as string,
  });
  const continueAt = response.headers.get("Upload-Offset");
  if (response.status === 409 && continueAt !== null) return { continueAt: Number(continueAt) };
  if (error !== undefined || data === undefined) throw problemOf(response.status, error);
  return data;
}

async function hashOf(file: File): Promise<string | null> {
  // Browsers have no hash on pages without encryption, other than those of this computer.
  if (!globalThis.crypto?.subtle || file.size > MOST_HASHED_BYTES) return null;
  const hash = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function isOtherContent(error: unknown): boolean {
  return (error as Problem).kind === "DatasetInvalid" && /SHA-256/.test((error as Problem).message);
}
