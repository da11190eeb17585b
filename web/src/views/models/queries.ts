/** What the views of models ask for. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

export const modelsQuery = infiniteQueryOptions({
  queryKey: ["models"],
  queryFn: ({ pageParam }) =>
    answer(api.GET("/api/models", { params: { query: { limit: 100, ...(pageParam ? { after: pageParam } : {}) } } })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next,
});

export const modelQuery = (model: string) =>
  queryOptions({
    queryKey: ["models", model],
    queryFn: () => answer(api.GET("/api/models/{model}", { params: { path: { model } } })),
  });
