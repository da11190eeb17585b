/**
 * A live stream of the API. It reconnects after errors. A browser has six connections for all windows of the page, and a
 * stream holds one: so each window has one stream, and none while it is hidden.
 */
import { connection } from "~/api/connection";

const HIDDEN_MS = 5_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

export interface StreamListener<T> {
  onItem(item: T): void;
  /** The stream answers; called again after every reconnection. */
  onOpen?(): void;
  onLost?(): void;
}

/** Opens the stream at `path`. Returns what closes it. */
export function openStream<T>(path: string, listener: StreamListener<T>): () => void {
  let source: EventSource | null = null;
  let last: string | null = null;
  let wait = FIRST_WAIT_MS;
  let timer: number | undefined;

  function open(): void {
    if (document.hidden) return; // it opens when the page is shown
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
    else if (source === null) open();
  }

  function close(): void {
    pause();
    document.removeEventListener("visibilitychange", onVisibility);
  }

  document.addEventListener("visibilitychange", onVisibility);
  open();
  return close;
}
