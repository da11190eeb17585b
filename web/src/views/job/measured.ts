/** What was measured of a job, for charts. */
import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

/** The names of all series. A name that a job does not have is refused, so this is asked first. */
export const measuredQuery = (job: string) =>
  queryOptions({
    queryKey: ["job", job, "measured"],
    queryFn: () => answer(api.GET("/api/jobs/{job}/metrics", { params: { path: { job }, query: { exact: true } } })),
    staleTime: 10_000,
  });

interface Wanted {
  readonly names: readonly string[];
  readonly axis?: "step" | "time";
  /** How wide the chart is, in pixels. */
  readonly columns?: number;
  readonly enabled?: boolean;
}

export const seriesQuery = (job: string, { names, axis = "step", columns = 600, enabled = true }: Wanted) =>
  queryOptions({
    queryKey: ["job", job, "series", names, axis, columns],
    queryFn: () =>
      answer(
        api.GET("/api/jobs/{job}/metrics/series", {
          params: { path: { job }, query: { name: [...names], axis, columns, exact: true } },
        }),
      ),
    enabled: enabled && names.length > 0,
    staleTime: 10_000,
  });
