/** The values under the cursor, or the last ones; also what the keyboard and screen readers move along the chart. */
import type { KeyboardEvent } from "react";
import { seriesToken } from "~/charts/colours";
import type { LineChartProps } from "~/charts/LineChart";
import { MARK_SIGNS } from "~/charts/marks";
import { type Columns, placesOf } from "~/charts/plotData";
import { placeText, sliderValue } from "~/charts/series";
import { UNKNOWN } from "~/text/format";
import styles from "./LineChart.module.css";

interface Props extends LineChartProps {
  readonly format: (value: number) => string;
  readonly data: Columns;
  readonly place: number | null;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

const NEAR = 0.01; // of the shown axis: a mark this close to the cursor is named

export function Legend({ title, series, span = 0, axis, format, data, place, range, marks, onKeyDown }: Props) {
  const [x] = data;
  const last = x.length - 1;
  const at = x[place ?? last];
  const shown = place ?? last;
  const values = placesOf(series, span).map(({ raw, smooth }) => ({
    raw: nearest(data[raw] ?? [], shown),
    smooth: smooth === null ? null : nearest(data[smooth] ?? [], shown),
  }));
  const text = values
    .map((value, number) => `${series[number]?.label} ${worded(value.raw, series[number]?.format ?? format)}`)
    .join(", ");
  const width = range ? range.to - range.from : (x[last] ?? 0) - (x[0] ?? 0);
  const near =
    place === null || at === undefined ? undefined : marks?.find((mark) => Math.abs(mark.x - at) <= width * NEAR);
  return (
    <div
      className={styles.legend}
      role="slider"
      tabIndex={last < 0 ? -1 : 0}
      aria-label={`Cursor of ${title}`}
      aria-valuemin={sliderValue(x[0] ?? 0)}
      aria-valuemax={sliderValue(x[last] ?? 0)}
      aria-valuenow={sliderValue(at ?? 0)}
      aria-valuetext={at === undefined ? "nothing was measured" : `${placeText(axis, at)}: ${text}`}
      title="Arrow keys move the cursor, + and − zoom, 0 shows everything"
      onKeyDown={onKeyDown}
    >
      <span className={styles.at}>{place === null || at === undefined ? "" : placeText(axis, at)}</span>
      {series.map((one, number) => (
        <span key={one.key} className={styles.entry}>
          <span className={styles.swatch} style={{ background: seriesToken(one.colour ?? number + 1) }} />
          {series.length > 1 || one.label !== title ? <span className={styles.label}>{one.label}</span> : null}
          <span className={styles.value}>{worded(values[number]?.raw, one.format ?? format)}</span>
          {values[number]?.smooth !== null ? (
            <span className="quiet">smoothed {worded(values[number]?.smooth, one.format ?? format)}</span>
          ) : null}
        </span>
      ))}
      {near ? (
        <span className="quiet">
          {MARK_SIGNS[near.kind]} {near.label}
        </span>
      ) : null}
    </div>
  );
}

function worded(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? UNKNOWN : format(value);
}

/** The value at a place, or of the nearest place where this series has one: overlaid runs have their own steps. */
function nearest(column: readonly (number | null | undefined)[], place: number): number | null {
  for (let away = 0; away < column.length; away += 1) {
    const before = column[place - away];
    if (before !== undefined) return before;
    const after = column[place + away];
    if (after !== undefined) return after;
  }
  return null;
}
