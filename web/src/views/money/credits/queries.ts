import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import type { LedgerEntry } from "~/api/documents";

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

const PAGE = 500;
const MOST_PAGES = 20;

/** A user's entries, newest first. The API answers oldest first, so all pages are read, up to a limit. */
export const ledgerQuery = (user: string) =>
  queryOptions({
    queryKey: ["credits", "ledger", user],
    queryFn: async () => {
      const entries: LedgerEntry[] = [];
      let after = 0;
      for (let page = 0; page < MOST_PAGES; page += 1) {
        const found = await answer(api.GET("/api/ledger", { params: { query: { user, limit: PAGE, after } } }));
        entries.push(...found.items);
        if (found.next === null || found.next === undefined) return { entries: entries.reverse(), isWhole: true };
        after = Number(found.next);
      }
      return { entries: entries.reverse(), isWhole: false };
    },
    staleTime: 10_000,
  });
