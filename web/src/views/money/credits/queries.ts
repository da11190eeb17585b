import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

export const creditSettingsQuery = queryOptions({
  queryKey: ["credits", "settings"],
  queryFn: () => answer(api.GET("/api/credits")),
  staleTime: 60_000,
});

export const accountQuery = (user: string) =>
  queryOptions({
    queryKey: ["credits", "account", user],
    queryFn: () => answer(api.GET("/api/users/{user}/credits", { params: { path: { user } } })),
  });

export const accountsQuery = queryOptions({
  queryKey: ["credits", "accounts"],
  queryFn: () => answer(api.GET("/api/credits/accounts", { params: { query: { limit: 500 } } })),
});

/** A user's entries, newest first. */
export const ledgerQuery = (user: string) =>
  infiniteQueryOptions({
    queryKey: ["credits", "ledger", user],
    queryFn: ({ pageParam: after }) =>
      answer(api.GET("/api/ledger", { params: { query: { user, limit: 50, after, newest_first: true } } })),
    initialPageParam: 0,
    getNextPageParam: ({ next }) => (next ? Number(next) : null),
    staleTime: 10_000,
  });
