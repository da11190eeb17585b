/** The page's chart for a benchmark: draws it, and says how long that took until the lines were on the canvas. */
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { LineChart } from "~/charts/LineChart";
import type { ChartSeries } from "~/charts/series";
import "~/design/base.css";

const host = document.createElement("main");
document.body.append(host);
let root = createRoot(host);
const nothing = () => undefined;

function series(points: number, spikeAt: number): ChartSeries[] {
  const x = Array.from({ length: points }, (_, place) => place);
  const y = x.map((at) => (at === spikeAt ? 5 : 1 + 0.1 * Math.sin(at / 700) + 0.05 * Math.sin(at * 12.9)));
  return [{ key: "loss", label: "Loss", x, y }];
}

function more([one]: ChartSeries[], value: number): ChartSeries[] {
  if (one === undefined) throw new Error("there is no series");
  return [{ ...one, x: one.x.concat(one.x.length), y: one.y.concat(value) }];
}

/** Milliseconds until the lines are drawn: uPlot draws in a microtask after React is done. */
async function draw(drawn: readonly ChartSeries[]): Promise<number> {
  const began = performance.now();
  flushSync(() =>
    root.render(
      <LineChart title="Loss" axis="step" series={drawn} span={500} height={280} range={null} onRange={nothing} />,
    ),
  );
  await new Promise<void>((resolve) => queueMicrotask(resolve));
  host.querySelector("canvas")?.getContext("2d")?.getImageData(0, 0, 1, 1); // until it is really painted
  return performance.now() - began;
}

function clear(): void {
  root.unmount();
  root = createRoot(host);
}

Object.assign(window, { chartBench: { series, more, draw, clear } });
