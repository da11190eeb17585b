/** An upload that goes on while its page is open, whatever view is shown; several files at a time. */
import { answer, api } from "~/api/client";
import type { DatasetProblem, UploadedFile } from "~/api/documents";
import { asProblem, type Problem } from "~/api/problem";
import type { Dropped, LocalFile } from "./dropped";
import { remember } from "./expected";
import { Paused, send } from "./sending";

const AT_A_TIME = 3;
const SHOW_MS = 100;
const RETRY_MS = [1_000, 2_000, 5_000, 10_000] as const;

export interface FileState {
  readonly path: string;
  readonly size: number;
  readonly received: number;
  readonly state: "waiting" | "sending" | "done" | "refused";
  readonly problems: readonly DatasetProblem[];
  /** Why the server does not take it. */
  readonly refusal: string | null;
  readonly local: LocalFile;
}

export interface Snapshot {
  /** `lost`: the server does not answer, and is asked again; `failed`: it refuses, and `problem` says why. */
  readonly state: "idle" | "sending" | "paused" | "lost" | "failed" | "done";
  readonly files: readonly FileState[];
  readonly leftOut: Dropped["leftOut"];
  readonly bytes: number;
  readonly received: number;
  readonly problem: Problem | null;
}

const NOTHING: Snapshot = { state: "idle", files: [], leftOut: [], bytes: 0, received: 0, problem: null };

export class Uploader {
  private files = new Map<string, FileState>();
  private leftOut: Dropped["leftOut"] = [];
  private state: Snapshot["state"] = "idle";
  private problem: Problem | null = null;
  private shown: Snapshot = NOTHING;
  private timer: number | undefined;
  private running: Promise<void> | null = null;
  private readonly listeners = new Set<() => void>();

  constructor(readonly id: string) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): Snapshot => this.shown;

  /** Add files and send them; what has arrived of them earlier is not sent again. */
  add(dropped: Dropped): void {
    for (const local of dropped.files) {
      const { path, file } = local;
      this.files.set(path, {
        path,
        size: file.size,
        received: 0,
        state: "waiting",
        problems: [],
        refusal: null,
        local,
      });
    }
    this.leftOut = [...this.leftOut, ...dropped.leftOut];
    remember(this.id, { files: this.files.size, bytes: this.total("size") });
    void this.continue();
  }

  pause(): void {
    if (this.state === "sending" || this.state === "lost") this.change("paused");
  }

  async continue(): Promise<void> {
    if (this.state === "sending" || this.state === "lost") return;
    this.problem = null;
    this.change("sending");
    await this.running; // of before the pause: its last piece arrives first
    this.running = this.run();
    await this.running;
  }

  private async run(): Promise<void> {
    for (let failures = 0; this.state === "sending" || this.state === "lost"; ) {
      try {
        await this.sendAll();
        this.finish();
        return;
      } catch (error) {
        if (error instanceof Paused) return;
        const problem = asProblem(error);
        if (!problem.isUnreachable && problem.status < 500) {
          this.problem = problem;
          this.change("failed");
          return;
        }
        if (this.state !== "sending" && this.state !== "lost") return;
        this.change("lost");
        await new Promise((go) => window.setTimeout(go, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]));
      }
    }
  }

  private async sendAll(): Promise<void> {
    const there = await this.arrived();
    const waiting = [...this.files.values()].filter((file) => file.state === "waiting" || file.state === "sending");
    if (this.state === "lost") this.change("sending");
    const queue = waiting.values();
    const worker = async () => {
      for (const file of queue) await this.sendOne(file.path, there.get(file.path) ?? null);
    };
    await Promise.all(Array.from({ length: Math.min(AT_A_TIME, waiting.length) }, worker));
  }

  private async sendOne(path: string, there: UploadedFile | null): Promise<void> {
    const file = this.files.get(path);
    if (!file || this.isPaused()) throw new Paused();
    this.set(path, { state: "sending" });
    try {
      const problems = await send({
        upload: this.id,
        local: file.local,
        there,
        onProgress: (received) => this.set(path, { received }),
        isPaused: () => this.isPaused(),
      });
      this.set(path, { state: "done", received: file.size, problems });
    } catch (error) {
      if (error instanceof Paused) throw error;
      const problem = asProblem(error);
      // A file that no training can use must not keep the others from arriving.
      if (problem.kind !== "DatasetInvalid") throw error;
      this.set(path, { state: "refused", refusal: problem.message });
    }
  }

  private isPaused(): boolean {
    return this.state !== "sending" && this.state !== "lost";
  }

  /** What the server has, by path. */
  private async arrived(): Promise<Map<string, UploadedFile>> {
    const found = new Map<string, UploadedFile>();
    let after: string | null = null;
    do {
      const page: { items: UploadedFile[]; next?: string | null } = await answer(
        api.GET("/api/datasets/{upload}/files", {
          params: { path: { upload: this.id }, query: { limit: 1000, ...(after === null ? {} : { after }) } },
        }),
      );
      for (const file of page.items) found.set(file.path, file);
      after = page.next ?? null;
    } while (after !== null);
    return found;
  }

  private finish(): void {
    const isLeft = [...this.files.values()].some((file) => file.state === "waiting" || file.state === "sending");
    if (isLeft) {
      this.change("idle");
      this.running = null;
      void this.continue(); // files were added meanwhile
      return;
    }
    remember(this.id, null);
    this.change("done");
  }

  private set(path: string, changes: Partial<FileState>): void {
    const file = this.files.get(path);
    if (file) this.files.set(path, { ...file, ...changes });
    this.timer ??= window.setTimeout(() => this.show(), SHOW_MS);
  }

  private change(state: Snapshot["state"]): void {
    this.state = state;
    this.show();
  }

  private show(): void {
    window.clearTimeout(this.timer);
    this.timer = undefined;
    this.shown = {
      state: this.state,
      files: [...this.files.values()],
      leftOut: this.leftOut,
      bytes: this.total("size"),
      received: this.total("received"),
      problem: this.problem,
    };
    for (const listener of this.listeners) listener();
  }

  private total(what: "size" | "received"): number {
    let sum = 0;
    for (const file of this.files.values()) sum += file.state === "refused" ? 0 : file[what];
    return sum;
  }
}
