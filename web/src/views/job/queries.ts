/** What the page of a training asks for. Everything is refreshed by the job's own events. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import type { JobEvent, Reading } from "~/api/documents";
import { type Page, readPage } from "~/api/pages";
import type { Range } from "~/charts/series";
import type { JobAxis } from "./search";

const LIVE_MS = 10_000;
const MOST_EVENTS = 1000;

const pathOf = (job: string) => `/api/jobs/${encodeURIComponent(job)}`;

/** All events of a job, oldest first. */
export const eventsQuery = (job: string) =>
  queryOptions({
    queryKey: ["job", job, "events", "all"],
    queryFn: async () => {
      const found: JobEvent[] = [];
      for (let after: number | null = 0; after !== null; ) {
        const path = `${pathOf(job)}/events?limit=${MOST_EVENTS}&after=${after}`;
        const page: Page<JobEvent> = await readPage<JobEvent>(path);
        found.push(...page.items);
        after = page.next ? Number(page.next) : null;
      }
      return found;
    },
  });

export const metricsQuery = (job: string, isLive: boolean) =>
  queryOptions({
    queryKey: ["job", job, "metrics"],
    queryFn: () => answer(api.GET("/api/jobs/{job}/metrics", { params: { path: { job } } })),
    refetchInterval: isLive ? LIVE_MS : false,
  });

interface Wanted {
  readonly names: readonly string[];
  readonly axis: JobAxis;
  readonly range: Range | null;
  readonly columns: number;
  readonly isLive: boolean;
}

export const seriesQuery = (job: string, { names, axis, range, columns, isLive }: Wanted) =>
  queryOptions({
    queryKey: ["job", job, "series", { names, axis, range, columns }],
    queryFn: () => {
      const query = { name: [...names], axis, columns, start: range?.from, end: range?.to };
      return answer(api.GET("/api/jobs/{job}/metrics/series", { params: { path: { job }, query } }));
    },
    enabled: names.length > 0,
    refetchInterval: isLive ? LIVE_MS : false,
    placeholderData: keepPreviousData, // the old lines stay until the finer ones come
  });

/** What the training itself recorded: saves, samples, changed batch sizes, out of memory. */
export const trainingEventsQuery = (job: string, isRecorded: boolean, isLive: boolean) =>
  queryOptions({
    queryKey: ["job", job, "training-events"],
    queryFn: () =>
      answer(
        api.GET("/api/jobs/{job}/metrics/rows/{table}", {
          params: { path: { job, table: "TrainingEvent" }, query: { limit: 10_000 } },
        }),
      ),
    enabled: isRecorded,
    refetchInterval: isLive ? LIVE_MS : false,
  });

export const readingsQuery = (job: string) =>
  queryOptions({
    queryKey: ["job", job, "readings"],
    queryFn: () => readPage<Reading>(`${pathOf(job)}/readings?latest=true&limit=1000`),
  });

export const recipeQuery = (recipe: string) =>
  queryOptions({
    queryKey: ["recipe", recipe],
    queryFn: () => answer(api.GET("/api/recipes/{recipe}", { params: { path: { recipe } } })),
    staleTime: Number.POSITIVE_INFINITY,
  });
