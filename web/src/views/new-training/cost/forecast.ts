/** What the training will take, kept up with what is typed. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { answer, api } from "~/api/client";
import type { Estimate, EstimateBody, RetryBody, Terms } from "~/api/documents";

export interface Forecast {
  readonly provider: string;
  readonly hours: Estimate["hours"];
  readonly pricePerHour: number | null;
  readonly cost: Estimate["cost_usd"];
  readonly gpu: string | null;
  readonly gpuGib: number | null;
  readonly memory: Estimate["gpu_memory_gib"];
  readonly memoryBasis: string;
  readonly minVramGib: number | null;
  readonly diskGib: number;
  readonly referenceHours: number | null;
  readonly pastRuns: number;
  readonly limits: Terms["limits"];
  readonly notes: readonly string[];
}

const TYPING_MS = 400;

/** The value once it has not changed for a moment. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  const key = JSON.stringify(value);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same content is the same value
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [key]);
  return settled;
}

export function useEstimate(body: EstimateBody | null) {
  const settled = useSettled(body);
  return useQuery({
    queryKey: ["estimate", settled],
    queryFn: async () =>
      ofEstimate(
        await answer(api.POST("/api/estimates", { body: settled ?? { recipe: "", images: 0, parameters: {} } })),
      ),
    enabled: settled !== null,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

export function useRetryTerms(job: string, body: RetryBody | null) {
  const settled = useSettled(body);
  return useQuery({
    queryKey: ["estimate", "retry", job, settled],
    queryFn: async () =>
      ofTerms(
        await answer(
          api.POST("/api/jobs/{job}/retry/terms", {
            params: { path: { job } },
            body: settled ?? { resume: false, apply_recommendations: false, only: [], parameters: {} },
          }),
        ),
      ),
    enabled: settled !== null && job !== "",
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

export function useOffers(
  asked: {
    readonly recipe: string;
    readonly provider: string;
    readonly maxPrice: string;
    readonly diskGib: string;
    readonly gpus: string;
  },
  forecast: Forecast | null,
) {
  const settled = useSettled(asked);
  const hours = forecast?.referenceHours ?? 1;
  const query = {
    recipe: settled.recipe,
    ...(settled.provider ? { provider: settled.provider } : {}),
    ...(settled.maxPrice ? { max_price_usd: settled.maxPrice } : {}),
    ...(Number(settled.diskGib) > 0 ? { disk_gib: Number(settled.diskGib) } : {}),
    ...(Number(settled.gpus) > 0 ? { gpus: Number(settled.gpus) } : {}),
    ...(forecast?.minVramGib ? { vram_gib: forecast.minVramGib } : {}),
    hours: Math.min(10_000, Math.max(0.01, hours)),
  };
  return useQuery({
    queryKey: ["offers", query],
    queryFn: () => answer(api.GET("/api/offers", { params: { query } })),
    enabled: settled.recipe !== "",
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  });
}

function ofEstimate(found: Estimate): Forecast {
  return {
    ...ofQuote(found),
    provider: found.provider,
    cost: found.cost_usd,
    pricePerHour: found.price_per_hour_usd,
    limits: found.limits,
    notes: found.notes,
  };
}

export function ofTerms(terms: Terms): Forecast {
  const { quote } = terms;
  return {
    ...ofQuote(quote),
    provider: terms.provider,
    cost: quote.cost_usd,
    pricePerHour: quote.price_per_hour_usd,
    limits: terms.limits,
    notes: terms.notes,
  };
}

function ofQuote(quote: Omit<Terms["quote"], "price_per_hour_usd" | "cost_usd">) {
  return {
    hours: quote.hours,
    gpu: quote.gpu,
    gpuGib: quote.gpu_gib ?? null,
    memory: quote.gpu_memory_gib ?? null,
    memoryBasis: quote.gpu_memory_basis ?? "",
    minVramGib: quote.min_vram_gib ?? null,
    diskGib: quote.disk_gib,
    referenceHours: quote.reference_hours ?? null,
    pastRuns: quote.past_runs,
  };
}
