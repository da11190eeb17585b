/**
 * A line chart of several series over training steps or time. What draws it is fetched on first use.
 *
 * <LineChart title="Loss" axis="step" series={series} format={figure} range={range} onRange={setRange} group="job" />
 */
import { lazy, type ReactNode, Suspense, useId, useState } from "react";
import { DataDialog } from "~/charts/DataDialog";
import type { Mark, Stretch, Zone } from "~/charts/marks";
import { Summary } from "~/charts/Summary";
import type { Axis, ChartSeries, Range } from "~/charts/series";
import { Button } from "~/design/Button";
import { figure } from "~/text/format";
import styles from "./LineChart.module.css";

const Plot = lazy(() => import("~/charts/Plot"));
const NONE: never[] = [];

export interface LineChartProps {
  readonly title: string;
  readonly series: readonly ChartSeries[];
  readonly axis: Axis;
  /** Of the drawing alone, in pixels. */
  readonly height?: number;
  /** A value with its unit. */
  readonly format?: (value: number) => string;
  /** A value at the axis, shorter; default: `format`. */
  readonly tick?: (value: number) => string;
  readonly log?: boolean;
  /** Over how many recorded points the thick line is smoothed; 0: only the measured values. */
  readonly span?: number;
  /** What is shown of the x axis; null: everything. Without `onRange` the chart keeps it itself. */
  readonly range?: Range | null;
  readonly onRange?: (range: Range | null) => void;
  /** Fixed ends of the y axis, such as 0 and 100 for percent. */
  readonly ends?: readonly [number, number];
  readonly marks?: readonly Mark[];
  readonly stretches?: readonly Stretch[];
  readonly zones?: readonly Zone[];
  /** Charts of one group share the cursor. */
  readonly group?: string;
  /** Between this chart's x axis and that of the group, where they differ. */
  readonly shared?: { readonly to: (x: number) => number | null; readonly from: (x: number) => number | null };
  /** Where all values can be downloaded. */
  readonly download?: string;
  readonly level?: 2 | 3;
  /** Beside the title. */
  readonly children?: ReactNode;
}

export function LineChart(props: LineChartProps) {
  const { title, series, format = figure, height = 200, marks = NONE, stretches = NONE, level = 2, axis } = props;
  const id = useId();
  const [ownRange, setOwnRange] = useState<Range | null>(null);
  const [isTableOpen, setTableOpen] = useState(false);
  const range = props.onRange ? (props.range ?? null) : ownRange;
  const onRange = props.onRange ?? setOwnRange;
  const Heading = level === 2 ? "h2" : "h3";
  return (
    <figure className={styles.chart} aria-labelledby={`${id}-title`} aria-describedby={`${id}-summary`}>
      <div className={styles.head}>
        <Heading id={`${id}-title`} className={styles.title}>
          {title}
        </Heading>
        {props.children}
        <span className={styles.actions}>
          {range ? (
            <Button kind="quiet" className={styles.small} onClick={() => onRange(null)}>
              ⤢ Show all
            </Button>
          ) : null}
          <Button
            kind="quiet"
            className={styles.small}
            aria-label={`Values of ${title} as a table`}
            title="Values as a table"
            onClick={() => setTableOpen(true)}
          >
            ▤
          </Button>
        </span>
      </div>
      <Summary id={`${id}-summary`} series={series} format={format} marks={marks} stretches={stretches} />
      <Suspense fallback={<div className={styles.waiting} style={{ height: height + 28 }} />}>
        <Plot {...props} format={format} height={height} range={range} onRange={onRange} />
      </Suspense>
      {isTableOpen ? (
        <DataDialog
          title={title}
          axis={axis}
          series={series}
          range={range}
          format={format}
          download={props.download}
          onClose={() => setTableOpen(false)}
        />
      ) : null}
    </figure>
  );
}
