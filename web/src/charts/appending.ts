/** What was read last, behind what the server has drawn of a series: so a live chart moves without fetching it again. */
import type { Measured, Reading } from "~/api/documents";
import { type Axis, type ChartSeries, drawable } from "~/charts/series";

/** `known` with the readings that follow `last`; a resumed attempt replaces the steps that it repeats. */
export function joined(known: readonly Reading[], fresh: readonly Reading[], most: number): readonly Reading[] {
  const last = known[known.length - 1]?.seq ?? 0;
  const added = fresh.filter(({ seq }) => seq > last);
  return added.length === 0 ? known : [...known, ...added].slice(-most);
}

/** The series with the readings behind its last point. */
export function withTail(
  series: ChartSeries,
  readings: readonly Reading[],
  axis: Axis,
  value: (reading: Reading) => Measured,
): ChartSeries {
  const end = series.x[series.x.length - 1] ?? Number.NEGATIVE_INFINITY;
  const x: number[] = [];
  const y: (number | null)[] = [];
  for (const reading of readings) {
    const found = value(reading);
    if (found === null || found === undefined) continue;
    const at = axis === "step" ? reading.step : Date.parse(reading.at) / 1000;
    if (at <= end) continue;
    while (x.length > 0 && (x[x.length - 1] ?? 0) >= at) {
      x.pop();
      y.pop();
    }
    x.push(at);
    y.push(drawable(found));
  }
  if (x.length === 0) return series;
  return {
    ...series,
    x: series.x.concat(x),
    y: series.y.concat(y),
    count: (series.count ?? series.x.length) + x.length,
  };
}
