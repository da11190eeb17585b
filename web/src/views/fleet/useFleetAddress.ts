/** What the address says about the list of trainings, so that a link shows the same list. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import { type Chosen, FACETS, type Facet, isFacet } from "./rows";

type Values = Readonly<Record<string, string | null>>;

export interface FleetAddress {
  readonly text: string;
  readonly chosen: Chosen;
  readonly sort: string | null;
  readonly group: Facet | null;
  /** The names of the groups that are collapsed. */
  readonly closed: readonly string[];
  /** null removes a value. */
  readonly change: (values: Values) => void;
}

export function useFleetAddress(): FleetAddress {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (values: Values) => {
      const given = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value ?? undefined]));
      void navigate({
        to: ".",
        search: ((before: Record<string, unknown>) => ({ ...before, ...given })) as never,
        replace: true,
        resetScroll: false,
      });
    },
    [navigate],
  );
  const value = (name: string): string | null => {
    const found = search[name];
    return found === undefined || found === null ? null : String(found);
  };
  const group = value("group");
  return {
    text: value("q") ?? "",
    chosen: Object.fromEntries(FACETS.map((facet) => [facet, value(facet)])),
    sort: value("sort"),
    group: isFacet(group) ? group : null,
    closed: value("closed")?.split("\n") ?? [],
    change,
  };
}
