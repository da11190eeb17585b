/** A live stream of the API. It reconnects after errors, and closes while the page is hidden: a browser has six connections. */
import { connection } from "~/api/connection";
import { problemOf } from "~/api/problem";

const HIDDEN_MS = 20_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

export interface StreamListener<T> {
  onItem(item: T): void;
  /** The stream answers; called again after every reconnection. */
  onOpen?(): void;
  onLost?(): void;
  /** The server said that nothing more will come. */
  onEnd?(): void;
}

/** Opens the stream at `path`; `after` is where to begin. Returns what closes it. */
export function openStream<T>(path: string, listener: StreamListener<T>, after: number | null = null): () => void {
  let source: EventSource | null = null;
  let last: string | null = after === null ? null : String(after);
  let wait = FIRST_WAIT_MS;
  let timer: number | undefined;
  let isClosed = false;

  function open(): void {
    if (connection.get().isSignedOut) {
      // Refusals count as failed sign-ins, and too many of them would block signing in again.
      timer = window.setTimeout(open, FIRST_WAIT_MS);
      return;
    }
    const url = new URL(path, window.location.origin);
    // EventSource sends no header of its own on its first request: where to begin is a parameter.
    if (last !== null) url.searchParams.set("after", last);
    source = new EventSource(url);
    source.onopen = () => {
      wait = FIRST_WAIT_MS;
      listener.onOpen?.();
    };
    source.onmessage = (message: MessageEvent<string>) => {
      if (message.lastEventId) last = message.lastEventId;
      listener.onItem(JSON.parse(message.data) as T);
    };
    source.addEventListener("end", () => {
      close();
      listener.onEnd?.();
    });
    source.onerror = () => {
      listener.onLost?.();
      pause();
      timer = window.setTimeout(open, wait);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    };
  }

  function pause(): void {
    window.clearTimeout(timer);
    source?.close();
    source = null;
  }

  function onVisibility(): void {
    window.clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(pause, HIDDEN_MS);
    else if (source === null && !isClosed) open();
  }

  function close(): void {
    isClosed = true;
    pause();
    document.removeEventListener("visibilitychange", onVisibility);
  }

  document.addEventListener("visibilitychange", onVisibility);
  open();
  return close;
}

export interface Page<T> {
  readonly items: T[];
  /** Where the next page begins; none after the last. */
  readonly next?: number | string | null;
}

/** All items that a page of the API has, with the number from which a stream goes on. */
export async function readPage<T>(path: string): Promise<Page<T>> {
  const response = await fetch(path, { headers: { Accept: "application/json" } });
  const body: unknown = await response.json();
  if (!response.ok) throw problemOf(response.status, body);
  return body as Page<T>;
}
