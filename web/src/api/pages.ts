/** What the API answers in pages: read once, or asked for again and again, so that what is new appears. */
import { connection } from "~/api/connection";
import { asProblem, problemOf } from "~/api/problem";

/** As often as a machine is polled while a user watches it. */
const PACE_MS = 1_000;
const LONGEST_WAIT_MS = 15_000;

export interface Page<T> {
  readonly items: T[];
  /** Where the next page begins; none after the last. */
  readonly next?: number | string | null;
  /** Where what comes later begins. */
  readonly cursor?: string | null;
}

export async function readPage<T>(path: string): Promise<Page<T>> {
  const response = await fetch(path, { headers: { Accept: "application/json" } });
  const body: unknown = await response.json();
  if (!response.ok) throw problemOf(response.status, body);
  return body as Page<T>;
}

export interface Follower<T> {
  readonly pathOf: (after: number) => string;
  readonly after: number;
  /** Whether nothing more is written: what there is now is the last. */
  isOver(): boolean;
  onItems(items: readonly T[]): void;
  /** The server answers; called again after every loss. */
  onOpen?(): void;
  onLost?(): void;
  onEnd?(): void;
}

/**
 * Follows what is behind `after`, while the page is shown. Returns what ends it. A stream would hold one of the few
 * connections of the browser for as long as it is open.
 */
export function followPages<T>(follower: Follower<T>): () => void {
  let { after } = follower;
  let wait = PACE_MS;
  let isOpen = false;
  let isClosed = false;
  let isAsking = false;
  let timer: number | undefined;

  async function ask(): Promise<void> {
    if (isAsking || document.hidden || connection.get().isSignedOut) return later();
    isAsking = true;
    try {
      await read();
    } catch (error) {
      if (isClosed) return;
      if (asProblem(error).status === 404) return end(); // it was removed
      isOpen = false;
      follower.onLost?.();
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    } finally {
      isAsking = false;
    }
    later();
  }

  async function read(): Promise<void> {
    for (let isMore = true; isMore && !isClosed; ) {
      const isOver = follower.isOver(); // before it is asked: what was written last is in the answer
      const page = await readPage<T>(follower.pathOf(after));
      if (isClosed) return;
      wait = PACE_MS;
      if (!isOpen) follower.onOpen?.();
      isOpen = true;
      if (page.items.length > 0) follower.onItems(page.items);
      after = Number(page.cursor ?? after);
      isMore = page.next !== null && page.next !== undefined;
      if (isOver && !isMore) end();
    }
  }

  function later(): void {
    window.clearTimeout(timer);
    if (!isClosed) timer = window.setTimeout(() => void ask(), wait);
  }

  function onVisibility(): void {
    if (!document.hidden) void ask();
  }

  function onConnection(): void {
    if (isOpen || wait === PACE_MS || connection.get().state !== "live") return;
    wait = PACE_MS;
    void ask();
  }

  function close(): void {
    isClosed = true;
    window.clearTimeout(timer);
    unsubscribe();
    document.removeEventListener("visibilitychange", onVisibility);
  }

  function end(): void {
    close();
    follower.onEnd?.();
  }

  const unsubscribe = connection.subscribe(onConnection);
  document.addEventListener("visibilitychange", onVisibility);
  void ask();
  return close;
}
