import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import type { Analysis, Job } from "~/api/documents";

const storedKey = (job: string) => ["job", job, "analysis", "stored"] as const;

/** The analysis that was stored when the training ended. Ask only for a job that has one. */
export const storedAnalysisQuery = (job: Job) =>
  queryOptions({
    queryKey: storedKey(job.id),
    queryFn: () => getAnalysis(job.id, { stored: true }),
    enabled: job.analysed_attempt !== null,
    staleTime: 60_000,
  });

/** A training that still runs, judged by what was measured so far. */
export const analysisSoFarQuery = (job: Job, isWanted: boolean) =>
  queryOptions({
    queryKey: ["job", job.id, "analysis", "so-far"],
    queryFn: () => getAnalysis(job.id, {}),
    enabled: isWanted,
    staleTime: 10_000,
  });

/** Once more with what can be rented now; this is not stored. */
export const analysisWithOffersQuery = (job: Job, isWanted: boolean) =>
  queryOptions({
    queryKey: ["job", job.id, "analysis", "offers"],
    queryFn: () => getAnalysis(job.id, { with_offers: true }),
    enabled: isWanted,
    staleTime: 60_000,
  });

function getAnalysis(job: string, query: { stored?: boolean; with_offers?: boolean }): Promise<Analysis> {
  return answer(api.GET("/api/jobs/{job}/analysis", { params: { path: { job }, query: { ...query, exact: true } } }));
}

/** Analyses a job anew and stores the result. */
export function useAnalyseNow(job: Job) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () =>
      answer(api.POST("/api/jobs/{job}/analysis", { params: { path: { job: job.id }, query: { exact: true } } })),
    onSuccess: (analysis) => {
      queries.setQueryData(storedKey(job.id), analysis);
      void queries.invalidateQueries({ queryKey: ["job", job.id], exact: true });
    },
  });
}

/** What a new job would be that follows these recommendations, by their place from 1. Nothing is stored. */
export const followingQuery = (job: string, numbers: readonly number[], resume: boolean) =>
  queryOptions({
    queryKey: ["job", job, "retry-terms", numbers, resume],
    queryFn: () =>
      answer(
        api.POST("/api/jobs/{job}/retry/terms", {
          params: { path: { job } },
          body: { apply_recommendations: true, only: numbers.map(String), resume },
        }),
      ),
    enabled: numbers.length > 0,
    staleTime: 60_000,
  });
