/** What a chart draws, and how values of several series come to one axis. */
import type { Measured } from "~/api/documents";
import { count } from "~/text/format";

/** `elapsed`: seconds since a run began, so that runs of different days lie over each other. */
export type Axis = "step" | "time" | "elapsed";

/** Part of an axis: steps, or seconds since 1970. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface ChartSeries {
  /** Unique in its chart. */
  readonly key: string;
  readonly label: string;
  /** Ascending. */
  readonly x: readonly number[];
  /** As many as `x`; null where nothing was measured. */
  readonly y: readonly (number | null)[];
  /** Which of the eight series colours, from 1. A run keeps its colour in every chart. */
  readonly colour?: number;
  /** How many values the points stand for; the server sends only the lowest and highest of each pixel. */
  readonly count?: number;
  /** Whether a smoothed line is drawn over it; true unless said otherwise. */
  readonly smooth?: boolean;
  /** `harmonic` for speeds: the mean of "steps per second" is steps by seconds, not the mean of the quotients. */
  readonly mean?: "plain" | "harmonic";
  /** Whether lines go on over places where nothing was measured: for what is measured less often than the others. */
  readonly spans?: boolean;
  /** A value with its unit, where it is another one than that of the chart. */
  readonly format?: (value: number) => string;
}

type Column = (number | null | undefined)[];

/** One list of x and one list of values for each series. `undefined`: this series has no point there, which is no gap. */
export function aligned(series: readonly ChartSeries[]): [number[], ...Column[]] {
  const [first] = series;
  if (first === undefined) return [[]];
  if (series.every((one) => one.x === first.x)) return [first.x as number[], ...series.map((one) => one.y as Column)];
  const x = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
  const place = new Map(x.map((value, index) => [value, index]));
  const columns = series.map((one) => {
    const column: Column = new Array(x.length).fill(undefined);
    one.x.forEach((value, index) => {
      column[place.get(value) ?? 0] = one.y[index] ?? null;
    });
    return column;
  });
  return [x, ...columns];
}

/** From the first to the last point of all series; null without points. */
export function extentOf(series: readonly ChartSeries[]): Range | null {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (const { x } of series) {
    if (x.length === 0) continue;
    from = Math.min(from, x[0] ?? from);
    to = Math.max(to, x[x.length - 1] ?? to);
  }
  return from <= to ? { from, to } : null;
}

/** Values of the wire as a chart draws them: what is not finite is a gap. */
export function drawable(value: Measured): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** A place on the x axis in words. */
export function placeText(axis: Axis, x: number): string {
  if (axis === "step") return `step ${count(Math.round(x))}`;
  if (axis === "elapsed") return `after ${elapsedText(x)}`;
  return new Date(x * 1000).toLocaleTimeString([], { hour12: false });
}

/** A place on the x axis as a slider may have it: to a thousandth, because 7.15e-7 is not a valid number there. */
export function sliderValue(x: number): number {
  return Number(x.toFixed(3));
}

/** `0:05`, `1:30`, `2:05:00`: hours, minutes and seconds since a run began. */
export function elapsedText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
