/** The series of several runs as overlaid charts. */
import type { Series } from "~/api/documents";
import type { Axis, ChartSeries } from "~/charts/series";
import { figure, gigabytes, percent, shortFigure, stepsPerSecond } from "~/text/format";
import type { Run } from "./comparedJobs";

export interface Metric {
  readonly title: string;
  /** The first of these that a run has. */
  readonly names: readonly string[];
  readonly format: (value: number) => string;
  /** At the axis, where there is room for a few characters. */
  readonly tick?: (value: number) => string;
  /** Whether the line is smoothed where it was recorded by step. */
  readonly isSmoothed?: boolean;
  readonly value?: (measured: number) => number | null;
  readonly ends?: readonly [number, number];
  /** Whether a logarithmic axis makes sense. */
  readonly mayBeLog?: boolean;
}

export const METRICS: readonly Metric[] = [
  { title: "Loss", names: ["loss"], format: figure, tick: shortFigure, isSmoothed: true, mayBeLog: true },
  { title: "Learning rate", names: ["learning_rate"], format: figure, tick: shortFigure, mayBeLog: true },
  {
    title: "Gradient norm",
    names: ["gradient_norm"],
    format: figure,
    tick: shortFigure,
    isSmoothed: true,
    mayBeLog: true,
  },
  {
    title: "Speed",
    names: ["step_time_seconds"],
    value: (seconds) => (seconds > 0 ? 1 / seconds : null),
    format: stepsPerSecond,
    tick: (value) => `${shortFigure(value)}/s`,
    isSmoothed: true,
  },
  { title: "GPU memory", names: ["gpu0.memory_used_gb", "gpu_memory_used_gb"], format: gigabytes },
  {
    title: "GPU load",
    names: ["gpu0.utilization_percent", "gpu_utilization_percent"],
    format: percent,
    ends: [0, 100],
  },
  { title: "System memory", names: ["used_memory_gb"], format: gigabytes },
];

/** The names of the metrics that a run has. */
export function namesOf(measured: readonly string[]): readonly string[] {
  return METRICS.flatMap(({ names }) => names.find((name) => measured.includes(name)) ?? []);
}

export interface Measured {
  readonly run: Run;
  readonly series: readonly Series[];
  /** When the run began, in seconds since 1970; null: its first value counts. */
  readonly beganAt: number | null;
}

export interface Overlaid {
  readonly metric: Metric;
  readonly axis: Exclude<Axis, "time">;
  readonly series: readonly ChartSeries[];
}

/** A chart for each metric that at least one run has. What a machine measured has no steps: it lies over time. */
export function overlaid(measured: readonly Measured[]): readonly Overlaid[] {
  return METRICS.flatMap((metric) => {
    const lines = measured.flatMap(({ run, series, beganAt }) => {
      const found = metric.names.flatMap((name) => series.filter((one) => one.name === name))[0];
      return found && found.x.length > 0 ? [{ run, found, beganAt }] : [];
    });
    const [first] = lines;
    if (first === undefined) return [];
    const axis = first.found.axis === "step" ? "step" : "elapsed";
    return [{ metric, axis, series: lines.map(({ run, found, beganAt }) => line(metric, run, found, beganAt)) }];
  });
}

function line(metric: Metric, run: Run, found: Series, beganAt: number | null): ChartSeries {
  const zero = found.axis === "time" ? (beganAt ?? found.x[0] ?? 0) : 0;
  const value = metric.value;
  return {
    key: run.job.id,
    label: `${run.letter} ${run.job.name}`,
    x: zero === 0 ? found.x : found.x.map((at) => Math.max(0, at - zero)),
    y: value ? found.y.map((one) => (one === null ? null : value(one))) : found.y,
    count: found.count,
    colour: run.slot,
    smooth: metric.isSmoothed === true,
  };
}
