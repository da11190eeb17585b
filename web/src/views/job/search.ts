/** What the address of a training's page says: tab, zoom, smoothing, axis. A link shows the same picture. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import type { Range } from "~/charts/series";

/** Where the tabs are, behind the # of an address. */
export const ABOUT = "about";

/** Steps, or the time of day. */
export type JobAxis = "step" | "time";

export interface Picture {
  readonly axis: JobAxis;
  readonly log: boolean;
  /** Over how many points is smoothed; null: a share of the run. */
  readonly span: number | null;
  readonly range: Range | null;
  readonly tab: string | null;
}

/** What of it changes; null removes a parameter. */
export interface PictureChange {
  readonly axis?: JobAxis | null;
  readonly log?: 1 | null;
  readonly smooth?: number | null;
  readonly from?: number | null;
  readonly to?: number | null;
  readonly tab?: string | null;
}

export function pictureOf(search: Record<string, unknown>): Picture {
  const from = number(search.from);
  const to = number(search.to);
  const span = number(search.smooth);
  return {
    axis: search.axis === "time" ? "time" : "step",
    log: Boolean(search.log) && search.log !== "0",
    span: span === null || span < 0 ? null : span,
    range: from !== null && to !== null && from < to ? { from, to } : null,
    tab: typeof search.tab === "string" ? search.tab : null,
  };
}

/** A range as short numbers: whole steps, or tenths of a second. */
export function rangeChange(axis: JobAxis, range: Range | null): PictureChange {
  if (range === null) return { from: null, to: null };
  if (axis === "time") return { from: Math.round(range.from * 10) / 10, to: Math.round(range.to * 10) / 10 };
  const from = Math.max(0, Math.floor(range.from));
  return { from, to: Math.max(from + 1, Math.ceil(range.to)) };
}

export function usePicture(): [Picture, (change: PictureChange) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const { axis, log, smooth, from, to, tab } = search;
  const picture = useMemo(() => pictureOf({ axis, log, smooth, from, to, tab }), [axis, log, smooth, from, to, tab]);
  const change = useCallback(
    (changed: PictureChange) => {
      const next = (old: Record<string, unknown>) => {
        const merged = { ...old, ...changed };
        return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null && value !== undefined));
      };
      void navigate({ to: ".", search: next as never, replace: true, resetScroll: false });
    },
    [navigate],
  );
  return [picture, change];
}

function number(value: unknown): number | null {
  const found = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}
