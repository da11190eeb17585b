/** Events of all jobs, as they happen: they mark what the page has fetched as old. */
import type { QueryClient } from "@tanstack/react-query";
import { connection } from "~/api/connection";
import type { JobEvent } from "~/api/documents";
import { openStream } from "~/api/stream";

const GATHER_MS = 300;

/** Keeps `queries` fresh as long as the page is open. Returns what ends it. */
export function followEvents(queries: QueryClient): () => void {
  let changed = new Set<string>();
  let isWaiting = false;

  function refresh(): void {
    isWaiting = false;
    const jobs = changed;
    changed = new Set();
    // Every list may show any job; what is shown of one job is fetched again only for that job.
    void queries.invalidateQueries({
      predicate: ({ queryKey }) => queryKey[0] !== "job" || jobs.has(String(queryKey[1])),
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
