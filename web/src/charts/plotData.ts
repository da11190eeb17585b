/** Series as columns for uPlot: x, then for each series the measured values and, if wanted, the smoothed ones. */
import { aligned, type ChartSeries } from "~/charts/series";
import { smoothed } from "~/charts/smoothing";

export type Columns = [number[], ...(number | null | undefined)[][]];

export function isSmoothed(series: ChartSeries, span: number): boolean {
  return span > 1 && series.smooth !== false;
}

/** The number of columns before those of each series: raw, and smoothed where it is. */
export function placesOf(series: readonly ChartSeries[], span: number): { raw: number; smooth: number | null }[] {
  let next = 1;
  return series.map((one) => {
    const raw = next++;
    return { raw, smooth: isSmoothed(one, span) ? next++ : null };
  });
}

export function columnsOf(series: readonly ChartSeries[], span: number, log: boolean): Columns {
  const [x, ...values] = aligned(series);
  const made: Columns = [x];
  series.forEach((one, place) => {
    let column = values[place] ?? [];
    // A logarithm of nothing cannot be drawn.
    if (log && column.some(hasNoLogarithm)) column = column.map((value) => (hasNoLogarithm(value) ? null : value));
    made.push(column);
    if (isSmoothed(one, span)) {
      const share = one.x.length === 0 ? 1 : x.length / one.x.length;
      const count = (one.count ?? one.x.length) * (one.x === x ? 1 : share);
      made.push(
        one.mean === "harmonic" ? inverse(smoothed(x, inverse(column), span, count)) : smoothed(x, column, span, count),
      );
    }
  });
  return made;
}

function hasNoLogarithm(value: number | null | undefined): boolean {
  return typeof value === "number" && value <= 0;
}

function inverse(values: Columns[1]): Columns[1] {
  return values.map((value) => (typeof value === "number" ? (value === 0 ? null : 1 / value) : value));
}
