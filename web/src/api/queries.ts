/** What several views ask for. A query's key begins with its noun; `["job", id, …]` is refreshed by that job's events. */
import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => answer(api.GET("/api/session")),
  staleTime: Number.POSITIVE_INFINITY,
  retry: false,
});

export const jobQuery = (job: string) =>
  queryOptions({
    queryKey: ["job", job],
    queryFn: () =>
      answer(api.GET("/api/jobs/{job}", { params: { path: { job }, query: { log: false, watch: true } } })),
    refetchInterval: (query) => (query.state.data?.state === "ENDED" ? false : 2_000),
  });

export const jobsQuery = (query: { ended?: boolean; limit?: number } = {}) =>
  queryOptions({
    queryKey: ["jobs", query],
    queryFn: () => answer(api.GET("/api/jobs", { params: { query } })),
    refetchInterval: 5_000,
  });

/** Files of a job; while it runs, new ones arrive. */
export const artifactsQuery = (job: string, { isRunning = false } = {}) =>
  queryOptions({
    queryKey: ["job", job, "artifacts"],
    refetchInterval: isRunning ? 5_000 : false,
    queryFn: () => answer(api.GET("/api/jobs/{job}/artifacts", { params: { path: { job }, query: { exact: true } } })),
    select: (page) => page.items,
  });

export const planQuery = (job: string) =>
  queryOptions({
    queryKey: ["job", job, "plan"],
    queryFn: () => answer(api.GET("/api/jobs/{job}/plan", { params: { path: { job }, query: { exact: true } } })),
    staleTime: 5_000,
  });

export const jobCostsQuery = (job: string) =>
  queryOptions({
    queryKey: ["job", job, "costs"],
    queryFn: () => answer(api.GET("/api/jobs/{job}/costs", { params: { path: { job }, query: { exact: true } } })),
    select: (page) => page.items,
  });
