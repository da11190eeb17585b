/** How uPlot draws a `LineChart`. */
import type { RefObject } from "react";
import uPlot from "uplot";
import { type Colours, seriesColour } from "~/charts/colours";
import { drawGround, drawMarks } from "~/charts/marks";
import type { Live } from "~/charts/Plot";
import { isSmoothed } from "~/charts/plotData";
import { type Axis, elapsedText, extentOf } from "~/charts/series";
import { count } from "~/text/format";

const STEPS = [1, 2, 5].flatMap((digit) => Array.from({ length: 12 }, (_, power) => digit * 10 ** power));
STEPS.sort((a, b) => a - b);
/** Between the marks of an axis of elapsed time. */
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].concat(
  [1, 2, 3, 6, 12, 24, 48, 96, 240].map((hours) => hours * 3600),
);

/** Of the font of the axes, in pixels. */
const HALF_FIGURE = 3.8;

export function optionsOf(live: RefObject<Live>, colours: Colours, width: number): uPlot.Options {
  const { series, span = 0, log = false, axis, height } = live.current;
  return {
    width,
    height,
    padding: [14, () => rightPadding(live.current), 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false },
      points: { size: 6, width: 2 },
      bind: {
        dblclick: () => () => {
          live.current.onRange(null);
          return null;
        },
      },
    },
    scales: {
      x: { time: axis === "time", range: (_plot, low, high) => wholeOrChosen(live.current, low, high) },
      y: { distr: log ? 3 : 1, range: (_plot, low, high) => heightOf(live.current, low, high) },
    },
    axes: [xAxis(live, colours), yAxis(live, colours)],
    series: [
      {},
      ...series.flatMap((one, place) => {
        const stroke = seriesColour(colours, one.colour ?? place + 1);
        const smooth = isSmoothed(one, span);
        const points = { show: one.x.length < 2, stroke, fill: stroke };
        const raw: uPlot.Series = {
          stroke,
          width: smooth ? 1 : 1.5,
          alpha: smooth ? 0.45 : 1,
          points,
          spanGaps: one.spans === true,
        };
        return smooth ? [raw, { stroke, width: 2, points: { show: false } }] : [raw];
      }),
    ],
    hooks: {
      drawAxes: [(plot) => drawGround(plot, drawn(live.current), colours)],
      draw: [(plot) => drawMarks(plot, drawn(live.current), colours)],
      setCursor: [
        (plot) => {
          const { idx, left = -1 } = plot.cursor;
          const inside = left >= 0 && idx !== null && idx !== undefined;
          live.current.onPlace(inside ? idx : null);
          live.current.onMove(inside ? (plot.data[0][idx] ?? null) : null);
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width: wide } = plot.select;
          if (wide < 4) return;
          const from = plot.posToVal(left, "x");
          const to = plot.posToVal(left + wide, "x");
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          live.current.onRange({ from, to });
        },
      ],
    },
  };
}

function drawn({ marks = [], stretches = [], zones = [] }: Live) {
  return { marks, stretches, zones };
}

function wholeOrChosen({ range, series }: Live, low: number, high: number): [number, number] {
  if (range) return [range.from, range.to];
  const extent = extentOf(series);
  const [from, to] = extent ? [extent.from, extent.to] : [low ?? 0, high ?? 1];
  return to > from ? [from, to] : [from - 1, from + 1];
}

/** Room for half the name of the last place: it is written under the end of the axis. */
function rightPadding({ axis, range, series }: Live): number {
  const { from, to } = range ?? extentOf(series) ?? { from: 0, to: 0 };
  const names = { step: count(Math.round(to)), elapsed: elapsedText(to), time: to - from < 600 ? "00:00:00" : "00:00" };
  return Math.max(12, Math.ceil(names[axis].length * HALF_FIGURE) + 2);
}

function heightOf({ ends, log }: Live, low: number | null, high: number | null): [number, number] {
  if (ends) return [ends[0], ends[1]];
  if (low === null || high === null) return log ? [0.1, 1] : [0, 1];
  if (log) return uPlot.rangeLog(low, high, 10, false) as [number, number];
  return uPlot.rangeNum(low, high, 0.08, low >= 0 && low < high / 4) as [number, number];
}

function xAxis(live: RefObject<Live>, colours: Colours): uPlot.Axis {
  return {
    stroke: colours.quiet,
    font: colours.font,
    size: 28,
    gap: 4,
    space: axisSpace,
    grid: { show: false },
    ticks: { stroke: colours.line, size: 4, width: 1 },
    border: { show: true, stroke: colours.line, width: 1 },
    ...PLACES[live.current.axis],
  };
}

const PLACES: Record<Axis, Partial<uPlot.Axis>> = {
  step: { incrs: STEPS, values: (_plot, splits) => splits.map((at) => count(at)) },
  elapsed: { incrs: SECONDS, values: (_plot, splits) => splits.map(elapsedText) },
  time: { values: (_plot, splits, _axis, _space, increment) => splits.map((at) => timeText(at, increment)) },
};

/** Between two places that are named, in pixels: a narrow chart has room for fewer and shorter names. */
function axisSpace(_plot: uPlot, _axis: number, _low: number, high: number, width: number): number {
  return width < 300 && high < 1e6 ? 44 : 72;
}

function yAxis(live: RefObject<Live>, colours: Colours): uPlot.Axis {
  return {
    stroke: colours.quiet,
    font: colours.font,
    // The same width in every chart, so that places above each other are the same step.
    size: 60,
    gap: 4,
    space: 36,
    grid: { stroke: colours.line, width: 1 },
    ticks: { show: false },
    values: (_plot, splits) => {
      const { tick, format } = live.current;
      return splits.map((value) => (value === null ? "" : (tick ?? format)(value)));
    },
  };
}

function timeText(at: number, increment: number): string {
  const time = new Date(at * 1000);
  if (increment >= 86_400) return time.toLocaleDateString([], { day: "numeric", month: "short" });
  const seconds = increment < 60 ? ({ second: "2-digit" } as const) : {};
  return time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false, ...seconds });
}
