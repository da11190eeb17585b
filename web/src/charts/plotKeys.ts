/** The keys of a chart: arrows move the cursor, + and − zoom, 0 shows everything. */
import type { KeyboardEvent } from "react";
import type uPlot from "uplot";
import type { Range } from "~/charts/series";

interface Move {
  readonly place?: number;
  readonly range?: Range | null;
}

const ZOOM = 0.5;

export function keyMove(event: KeyboardEvent, plot: uPlot, place: number | null): Move | null {
  const x = plot.data[0];
  const { min, max } = plot.scales.x ?? {};
  if (x.length === 0 || min === undefined || max === undefined) return null;
  const first = x.findIndex((at) => at >= min);
  const last = x.findLastIndex((at) => at <= max);
  const far = event.shiftKey ? Math.max(1, Math.round((last - first) / 20)) : 1;
  const now = place ?? last;
  const within = (wanted: number) => ({ place: Math.min(last, Math.max(first, wanted)) });
  switch (event.key) {
    case "ArrowLeft":
    case "ArrowDown":
      return within(now - far);
    case "ArrowRight":
    case "ArrowUp":
      return within(now + far);
    case "Home":
      return within(first);
    case "End":
      return within(last);
    case "+":
    case "=":
      return { range: around(x[now] ?? min, { from: min, to: max }, ZOOM) };
    case "-":
      return { range: around(x[now] ?? min, { from: min, to: max }, 1 / ZOOM) };
    case "0":
    case "Escape":
      return { range: null };
    default:
      return null;
  }
}

/** The range made longer or shorter, with `centre` staying where it is on the screen. */
export function around(centre: number, { from, to }: Range, factor: number): Range {
  return { from: centre - (centre - from) * factor, to: centre + (to - centre) * factor };
}
