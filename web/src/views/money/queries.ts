import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

export type Range = "2d" | "30d" | "90d";

/** Midnight some days ago, where this browser is. */
export function daysAgo(days: number, now: Date = new Date()): Date {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days);
}

const MOST_ENDED = 500;

/** What every training cost, and what bills now. */
export const jobCostsQuery = queryOptions({
  queryKey: ["overview", "money"],
  queryFn: () =>
    answer(
      api.GET("/api/overview", {
        params: { query: { ended_limit: MOST_ENDED, today_from: daysAgo(0).toISOString() } },
      }),
    ),
  refetchInterval: 10_000,
});

const RANGES = {
  "2d": { part: "hour", days: 1 },
  "30d": { part: "day", days: 29 },
  "90d": { part: "day", days: 89 },
} as const;

export const costsInRangeQuery = (range: Range) =>
  queryOptions({
    queryKey: ["costs", "range", range],
    queryFn: () => {
      const { part, days } = RANGES[range];
      const query = { part, start: daysAgo(days).toISOString() };
      return answer(api.GET("/api/costs/over-time", { params: { query } }));
    },
    refetchInterval: 60_000,
  });

/** Since the first of this month. */
export const monthQuery = queryOptions({
  queryKey: ["costs", "month"],
  queryFn: () => {
    const now = new Date();
    const start = new Date(now.getFullYear(), now.getMonth(), 1).toISOString();
    return answer(api.GET("/api/costs/over-time", { params: { query: { part: "day", start } } }));
  },
  refetchInterval: 60_000,
});

export const budgetQuery = queryOptions({
  queryKey: ["budget"],
  queryFn: () => answer(api.GET("/api/users/{user}/budget", { params: { path: { user: "me" } } })),
  refetchInterval: 30_000,
});
