/** Which runs are compared, in the address, and the colour and letter that each keeps. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useRef } from "react";
import type { ComparedJob } from "~/api/documents";

export const MOST_RUNS = 8;

/** A compared run with what tells it apart everywhere: a letter and one of the eight series colours, from 1. */
export interface Run {
  readonly job: ComparedJob;
  readonly slot: number;
  readonly letter: string;
}

/** The ids or names of the address, and what changes them. */
export function useComparedJobs(): [readonly string[], (jobs: readonly string[]) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (jobs: readonly string[]) =>
      void navigate({
        to: ".",
        search: ((before: Record<string, unknown>) => ({
          ...before,
          jobs: jobs.length > 1 ? [...jobs] : jobs[0],
        })) as never,
        resetScroll: false,
      }),
    [navigate],
  );
  return [jobsIn(search.jobs), change];
}

/** Each once. An id of digits alone is read as a number. */
export function jobsIn(value: unknown): readonly string[] {
  const given = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  return [...new Set(given.map(String).filter((one) => one !== ""))];
}

/** A number for each id that stays the same while others come, go and change places. */
export function slotsOf(ids: readonly string[], before: ReadonlyMap<string, number>): Map<string, number> {
  const slots = new Map<string, number>();
  for (const id of ids) {
    const known = before.get(id);
    if (known !== undefined) slots.set(id, known);
  }
  const used = new Set(slots.values());
  for (const id of ids) {
    if (slots.has(id)) continue;
    let free = 1;
    while (used.has(free)) free += 1;
    used.add(free);
    slots.set(id, free);
  }
  return slots;
}

export function useRuns(jobs: readonly ComparedJob[]): readonly Run[] {
  const slots = useRef<Map<string, number>>(new Map());
  const ids = jobs.map((job) => job.id);
  slots.current = slotsOf(ids, slots.current);
  return jobs.map((job) => {
    const slot = slots.current.get(job.id) ?? 1;
    return { job, slot, letter: String.fromCharCode(64 + slot) };
  });
}
