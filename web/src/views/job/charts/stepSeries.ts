/** A run's series over steps as charts draw them, with what was read since the server drew them. */
import type { Measured, Reading, Series } from "~/api/documents";
import { withTail } from "~/charts/appending";
import { type ChartSeries, drawable } from "~/charts/series";
import type { JobAxis } from "../search";
import { LEARNING_RATE, LOSS, STEP_TIME } from "./names";

const READ: Record<string, (reading: Reading) => Measured> = {
  [LOSS]: (reading) => reading.loss,
  [LEARNING_RATE]: (reading) => reading.learning_rate,
  [STEP_TIME]: (reading) => reading.steps_per_second,
};

interface Asked {
  readonly name: string;
  readonly label: string;
  readonly colour: number;
}

/** `drawn` may be missing: while nothing was recorded the readings alone make the chart. Null without any point. */
export function stepSeries(
  asked: Asked,
  drawn: Series | undefined,
  readings: readonly Reading[],
  axis: JobAxis,
): ChartSeries | null {
  const isSpeed = asked.name === STEP_TIME;
  const known: ChartSeries = {
    key: asked.name,
    label: asked.label,
    colour: asked.colour,
    x: drawn?.x ?? [],
    y: (drawn?.y ?? []).map((value) => (isSpeed ? speedOf(value) : drawable(value))),
    count: drawn?.count,
    mean: isSpeed ? "harmonic" : "plain",
    smooth: asked.name !== LEARNING_RATE,
  };
  const read = READ[asked.name];
  const made = read === undefined ? known : withTail(known, readings, axis, read);
  return made.x.length === 0 ? null : made;
}

function speedOf(seconds: number | null): number | null {
  return seconds === null || seconds <= 0 ? null : drawable(1 / seconds);
}
