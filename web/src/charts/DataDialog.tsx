/** The values of a chart as a table, for those who read rather than look, and for copying. */
import type { Axis, ChartSeries, Range } from "~/charts/series";
import { aligned, elapsedText } from "~/charts/series";
import { Dialog } from "~/design/Dialog";
import { count, counted, exactly, UNKNOWN } from "~/text/format";
import styles from "./LineChart.module.css";

const HEADINGS: Record<Axis, string> = { step: "Step", time: "Time", elapsed: "Elapsed" };
const placeOf: Record<Axis, (x: number) => string> = {
  step: count,
  time: (x) => exactly(x * 1000),
  elapsed: elapsedText,
};

interface Props {
  readonly title: string;
  readonly axis: Axis;
  readonly series: readonly ChartSeries[];
  readonly range: Range | null;
  readonly format: (value: number) => string;
  readonly download?: string;
  readonly onClose: () => void;
}

const MOST_ROWS = 500;

export function DataDialog({ title, axis, series, range, format, download, onClose }: Props) {
  const [x, ...columns] = aligned(series);
  const places = x.flatMap((at, place) => (range === null || (at >= range.from && at <= range.to) ? [place] : []));
  const shown = places.slice(-MOST_ROWS);
  return (
    <Dialog open onClose={onClose} title={`${title}: values`} wide>
      <p className="quiet">
        {places.length > shown.length ? `The last ${shown.length} of ` : ""}
        {counted(places.length, "point")}.{" "}
        {download ? (
          <a href={download} download>
            Download all as CSV
          </a>
        ) : null}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className={styles.table} tabIndex={0} aria-label={`${title}: values`}>
        <table>
          <thead>
            <tr>
              <th scope="col">{HEADINGS[axis]}</th>
              {series.map((one) => (
                <th scope="col" key={one.key}>
                  {one.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((place) => (
              <tr key={place}>
                <th scope="row">{placeOf[axis](x[place] ?? 0)}</th>
                {columns.map((column, number) => (
                  <td key={series[number]?.key}>{cell(column[place], series[number]?.format ?? format)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </Dialog>
  );
}

function cell(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? UNKNOWN : format(value);
}
