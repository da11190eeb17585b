import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

/** The series of a run in numbers: its lowest loss, and when it began. */
export const runSummaryQuery = (job: string) =>
  queryOptions({
    queryKey: ["job", job, "summary"],
    queryFn: () =>
      answer(api.GET("/api/jobs/{job}/metrics/summary", { params: { path: { job }, query: { exact: true } } })),
    staleTime: 10_000,
  });
