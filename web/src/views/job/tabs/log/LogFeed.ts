/** Fetches a job's log: first what there is, page by page, then what comes. It goes on where it was left. */
import type { LogPiece } from "~/api/documents";
import { followPages, readPage } from "~/api/pages";
import { asProblem, type Problem } from "~/api/problem";
import { LogBook } from "./LogBook";
import { logPage } from "./logPath";

const GATHER_MS = 150;

export type FeedState = "loading" | "live" | "lost" | "ended";

export class LogFeed {
  readonly book = new LogBook();
  state: FeedState = "loading";
  problem: Problem | null = null;
  /** Changes whenever something else must be shown. */
  version = 0;
  /** Whether the job has ended, so that its log does not grow. */
  isJobOver = false;
  #last = 0;
  #timer: number | undefined;
  #unfollow: (() => void) | null = null;
  #run = 0;
  readonly #listeners = new Set<() => void>();

  constructor(readonly job: string) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Returns what pauses it. */
  start(): () => void {
    const run = ++this.#run;
    if (this.state !== "ended") void this.#read(run);
    return () => {
      this.#run += 1;
      this.#unfollow?.();
      this.#unfollow = null;
    };
  }

  retry(): void {
    this.problem = null;
    this.#change("loading");
    void this.#read(this.#run);
  }

  async #read(run: number): Promise<void> {
    try {
      for (let isMore = true; isMore; ) {
        const page = await readPage<LogPiece>(logPage(this.job, this.#last));
        if (run !== this.#run) return;
        for (const piece of page.items) this.#take(piece);
        isMore = page.next !== null && page.next !== undefined;
        this.#soon();
      }
      this.#follow();
    } catch (error) {
      if (run !== this.#run) return;
      this.problem = asProblem(error);
      this.#change("lost");
    }
  }

  #follow(): void {
    this.#unfollow = followPages<LogPiece>({
      pathOf: (after) => logPage(this.job, after),
      after: this.#last,
      isOver: () => this.isJobOver,
      onOpen: () => this.#change("live"),
      onLost: () => this.#change("lost"),
      onItems: (pieces) => {
        for (const piece of pieces) this.#take(piece);
        this.#soon();
      },
      onEnd: () => {
        this.book.end();
        this.#change("ended");
      },
    });
  }

  #take(piece: LogPiece): void {
    // After a lost connection a piece may come again.
    if (piece.seq <= this.#last) return;
    this.#last = piece.seq;
    this.book.add(piece);
  }

  #soon(): void {
    this.#timer ??= window.setTimeout(() => this.#change(this.state), GATHER_MS);
  }

  #change(state: FeedState): void {
    window.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.state = state;
    this.version += 1;
    for (const listener of this.#listeners) listener();
  }
}

let kept: LogFeed | null = null;

/** The feed of a job. The last one is kept: coming back from another tab needs no wait. */
export function feedOf(job: string): LogFeed {
  if (kept?.job !== job) kept = new LogFeed(job);
  return kept;
}
