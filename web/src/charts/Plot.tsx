/** uPlot in React: the canvas of a `LineChart`, its legend and its keys. */
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { readColours } from "~/charts/colours";
import { moveCursor, onCursor } from "~/charts/cursor";
import { Legend } from "~/charts/Legend";
import type { LineChartProps } from "~/charts/LineChart";
import { optionsOf } from "~/charts/options";
import { columnsOf } from "~/charts/plotData";
import { keyMove } from "~/charts/plotKeys";
import { extentOf, type Range } from "~/charts/series";
import styles from "./LineChart.module.css";

interface PlotProps extends LineChartProps {
  readonly format: (value: number) => string;
  readonly height: number;
  readonly range: Range | null;
  readonly onRange: (range: Range | null) => void;
}

/** What a drawn chart asks of its newest properties. */
export interface Live extends PlotProps {
  readonly onPlace: (place: number | null) => void;
  readonly onMove: (x: number | null) => void;
}

export default function Plot(props: PlotProps) {
  const { series, span = 0, log = false, axis, height, range, group, shared } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [self] = useState(() => Symbol("chart"));
  const [place, setPlace] = useState<number | null>(null);
  const [theme, setTheme] = useState(0);
  const data = useMemo(() => columnsOf(series, span, log), [series, span, log]);
  const live = useRef<Live>(null as never);
  live.current = {
    ...props,
    onPlace: setPlace,
    onMove: (x) => {
      if (group) moveCursor(group, x === null ? null : shared ? shared.to(x) : x, self);
    },
  };
  const newest = useRef(data);
  newest.current = data;

  // Only another kind of chart is built anew; new values, another range and another size change the one that is there.
  const look = JSON.stringify([series.map((one) => [one.key, one.colour, one.smooth]), span > 1, log, axis, theme]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `look` stands for all that the options are made of
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const options = optionsOf(live, readColours(), element.clientWidth || 320);
    const made = new uPlot(options, newest.current as uPlot.AlignedData, element);
    plot.current = made;
    const resized = new ResizeObserver(() => {
      const size = { width: element.clientWidth, height: live.current.height };
      // It also reports what it observes first: the same size drawn again would be a second paint.
      if (size.width > 0 && (size.width !== made.width || size.height !== made.height)) made.setSize(size);
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [look]);

  useEffect(() => {
    const drawn = plot.current;
    if (drawn !== null && drawn.data !== (data as unknown)) drawn.setData(data as uPlot.AlignedData);
  }, [data]);

  const { from = null, to = null } = range ?? {};
  // biome-ignore lint/correctness/useExhaustiveDependencies: the ends are what counts, not the object
  useEffect(() => {
    const extent = range ?? extentOf(live.current.series);
    if (extent !== null) plot.current?.setScale("x", { min: extent.from, max: extent.to });
  }, [from, to]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: these are drawn by hand, on a canvas that exists already
  useEffect(() => plot.current?.redraw(false), [props.marks, props.stretches, props.zones]);

  useEffect(() => {
    const changed = () => setTheme((number) => number + 1);
    window.addEventListener("themechange", changed);
    return () => window.removeEventListener("themechange", changed);
  }, []);

  useEffect(() => {
    if (!group) return;
    return onCursor(group, (sharedX, sender) => {
      const drawn = plot.current;
      if (drawn === null || sender === self) return;
      const { shared: axes } = live.current;
      const x = sharedX === null ? null : axes ? axes.from(sharedX) : sharedX;
      const left = x === null ? -10 : drawn.valToPos(x, "x");
      drawn.setCursor({ left, top: left < 0 ? -10 : 0 }, false);
      setPlace(drawn.cursor.idx ?? null);
    });
  }, [group, self]);

  function onKeyDown(event: KeyboardEvent): void {
    const drawn = plot.current;
    const move = drawn && keyMove(event, drawn, place);
    if (!move) return;
    event.preventDefault();
    if (move.range !== undefined) props.onRange(move.range);
    if (move.place !== undefined) {
      const left = drawn.valToPos(drawn.data[0][move.place] ?? 0, "x");
      drawn.setCursor({ left, top: 0 }, false);
      setPlace(move.place);
      live.current.onMove(drawn.data[0][move.place] ?? null);
    }
  }

  return (
    <>
      <Legend {...props} data={data} place={place} onKeyDown={onKeyDown} />
      <div ref={host} className={styles.plot} style={{ height }} aria-hidden />
    </>
  );
}
