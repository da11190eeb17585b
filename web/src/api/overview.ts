/** All jobs in a line each, what they cost over time, and the machines of all providers. */
import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

/** For queries that events do not refresh: they are asked again at an interval of their own. */
export const OWN_PACE = { ownPace: true } as const;

/** When today began, where this browser is. */
export function midnight(): string {
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  return today.toISOString();
}

export const overviewQuery = queryOptions({
  queryKey: ["overview"],
  queryFn: () => answer(api.GET("/api/overview", { params: { query: { today_from: midnight() } } })),
  // The title of a tab in the background says how far a training is.
  refetchInterval: () => (document.hidden ? 5_000 : 3_000),
  refetchIntervalInBackground: true,
  meta: OWN_PACE,
});

const DAYS = 30;

/** What machines cost on each of the last days, or in each hour of the last two. */
export const costsOverTimeQuery = (part: "hour" | "day") =>
  queryOptions({
    queryKey: ["costs", "over-time", part],
    queryFn: () => {
      const start = new Date(midnight());
      start.setDate(start.getDate() - (part === "day" ? DAYS - 1 : 1));
      return answer(api.GET("/api/costs/over-time", { params: { query: { part, start: start.toISOString() } } }));
    },
    refetchInterval: 60_000,
    staleTime: 30_000,
    meta: OWN_PACE,
  });

/** Every provider is asked for it, so not often. Only administrators may. */
export const instancesQuery = queryOptions({
  queryKey: ["instances"],
  queryFn: () => answer(api.GET("/api/instances")),
  refetchInterval: 60_000,
  staleTime: 30_000,
  meta: OWN_PACE,
});
