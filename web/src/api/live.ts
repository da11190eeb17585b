/** Events of all jobs, as they happen: they mark what the page has fetched as old. */
import type { QueryClient } from "@tanstack/react-query";
import { connection } from "~/api/connection";
import type { JobEvent } from "~/api/documents";
import { openStream } from "~/api/stream";

const GATHER_MS = 300;

/** Nouns that no event of a job changes; the checks even write to the bucket, and a dataset check reads every picture. */
const STILL = new Set<unknown>([
  "session",
  "checks",
  "recipes",
  "server",
  "tokens",
  "users",
  "dataset-check",
  "estimate",
  "offers",
]);

/** Keeps `queries` fresh as long as the page is open. Returns what ends it. */
export function followEvents(queries: QueryClient): () => void {
  let changed = new Set<string>();
  let isWaiting = false;

  function refresh(): void {
    isWaiting = false;
    const jobs = changed;
    changed = new Set();
    // Every list may show any job; what is shown of one job is fetched again only for that job. What many events must
    // not make the server do again and again, such as asking the providers, has its own pace.
    void queries.invalidateQueries({
      predicate: ({ queryKey: [noun, id], meta }) =>
        meta?.ownPace !== true && (noun === "job" ? jobs.has(String(id)) : !STILL.has(noun)),
    });
  }

  return openStream<JobEvent>("/api/events", {
    onOpen: () => connection.streaming(),
    onLost: () => connection.failed(),
    onItem: (event) => {
      connection.streaming();
      if (event.job) changed.add(event.job);
      if (isWaiting) return;
      isWaiting = true;
      window.setTimeout(refresh, GATHER_MS);
    },
  });
}
