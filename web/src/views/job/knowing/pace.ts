/** How fast a training is, and whether it stays so, from its last readings. */
import type { Reading } from "~/api/documents";
import { finite } from "~/text/format";

export interface Pace {
  readonly stepsPerSecond: number;
  /** `steady`: hardly changes; otherwise by what share it changed, negative where it slowed down. */
  readonly change: number;
  readonly isSteady: boolean;
  /** Seconds that this rests on. */
  readonly over: number;
}

const FEWEST = 6;
const STEADY = 0.15;

/** Compares the last quarter of the readings with those before; null while there are too few. */
export function paceOf(readings: readonly Reading[]): Pace | null {
  const attempt = readings[readings.length - 1]?.attempt;
  const known = readings.flatMap(({ at, steps_per_second, attempt: own }) => {
    const value = finite(steps_per_second);
    return own === attempt && value !== null && value > 0 ? [{ at: Date.parse(at), value }] : [];
  });
  const [first] = known;
  const last = known[known.length - 1];
  if (known.length < FEWEST || first === undefined || last === undefined) return null;
  const split = Math.floor((known.length * 3) / 4);
  const before = median(known.slice(0, split).map(({ value }) => value));
  const now = median(known.slice(split).map(({ value }) => value));
  const change = now / before - 1;
  return { stepsPerSecond: now, change, isSteady: Math.abs(change) <= STEADY, over: (last.at - first.at) / 1000 };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
