/** A chart in a sentence, for people who do not see it. */
import type { ChartSeries } from "~/charts/series";

export interface Figures {
  readonly first: number;
  readonly last: number;
  readonly lowest: number;
  readonly highest: number;
}

/** The figures of a series; null if nothing was measured. */
export function figuresOf(y: readonly (number | null | undefined)[]): Figures | null {
  let found: { first: number; last: number; lowest: number; highest: number } | null = null;
  for (const value of y) {
    if (value === null || value === undefined) continue;
    if (found === null) found = { first: value, last: value, lowest: value, highest: value };
    found.last = value;
    if (value < found.lowest) found.lowest = value;
    if (value > found.highest) found.highest = value;
  }
  return found;
}

/** `Loss: first 0.4, last 0.08, lowest 0.07, highest 0.41.` */
export function summaryOf(series: readonly ChartSeries[], format: (value: number) => string): string {
  return series
    .map(({ label, y, format: own }) => {
      const worded = own ?? format;
      const found = figuresOf(y);
      if (found === null) return `${label}: nothing was measured.`;
      const { first, last, lowest, highest } = found;
      return `${label}: first ${worded(first)}, last ${worded(last)}, lowest ${worded(lowest)}, highest ${worded(highest)}.`;
    })
    .join(" ");
}
