/** The charts of a training: loss, speed, learning rate, gradient norm, what else it recorded, and its machine. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Job, JobEvent, Metrics, Reading } from "~/api/documents";
import { LineChart } from "~/charts/LineChart";
import type { Range } from "~/charts/series";
import { usualSpan } from "~/charts/smoothing";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { figure, shortFigure, stepsPerSecond } from "~/text/format";
import { metricsQuery, seriesQuery, trainingEventsQuery } from "../queries";
import { rangeChange, usePicture } from "../search";
import { Controls } from "./Controls";
import styles from "./JobCharts.module.css";
import { MachineCharts } from "./MachineCharts";
import { GRADIENT_NORM, LEARNING_RATE, LOSS, ownNames, STEP_TIME, stepNames, titleOf } from "./names";
import { spoiltMark, stalls, stepMarks, timeMarks } from "./runMarks";
import { stepSeries } from "./stepSeries";

export const CURSOR = "job";

interface Props {
  readonly job: Job;
  readonly events: readonly JobEvent[];
  readonly readings: readonly Reading[];
}

export function JobCharts({ job, events, readings }: Props) {
  const isLive = job.state !== "ENDED";
  const { data: metrics, error, refetch } = useQuery(metricsQuery(job.id, isLive));
  if (error && !metrics) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!metrics) return <Loading what="the charts" height={560} />;
  return <Drawn job={job} events={events} readings={readings} metrics={metrics} isLive={isLive} />;
}

function Drawn({ job, events, readings, metrics, isLive }: Props & { metrics: Metrics; isLive: boolean }) {
  const [picture, change] = usePicture();
  const { axis, range, log } = picture;
  const names = useMemo(() => stepNames(metrics.series), [metrics.series]);
  const columns = columnsOfWindow();
  const { data, error, isPending } = useQuery(seriesQuery(job.id, { names, axis, range, columns, isLive }));
  const isRecorded = metrics.tables.some(({ name }) => name === "TrainingEvent");
  const { data: rows } = useQuery(trainingEventsQuery(job.id, isRecorded, isLive));
  const marks = useMemo(
    () => (axis === "time" ? timeMarks(rows, events) : stepMarks(job, rows)),
    [axis, rows, job, events],
  );
  const now = Date.parse(job.as_of);
  const stretches = useMemo(() => stalls(events, axis, now), [events, axis, now]);
  const charts = useMemo(() => {
    const made = (name: string, label: string, colour: number) => {
      const drawn = data?.series.find((series) => series.name === name);
      const series = stepSeries({ name, label, colour }, drawn, readings, axis);
      return series === null ? null : [series];
    };
    return {
      loss: made(LOSS, "Loss", 1),
      small: [
        { title: "Speed", series: made(STEP_TIME, "Speed", 3), format: stepsPerSecond },
        { title: "Learning rate", series: made(LEARNING_RATE, "Learning rate", 7), format: figure },
        { title: "Gradient norm", series: made(GRADIENT_NORM, "Gradient norm", 2), format: figure },
        ...ownNames(metrics.series).map((name, place) => ({
          title: titleOf(name),
          series: made(name, titleOf(name), (place + 3) % 8),
          format: figure,
        })),
      ].filter(({ series }) => series !== null),
    };
  }, [data, readings, axis, metrics.series]);

  if (error && !data) return <ProblemNote problem={error} />;
  if (names.length > 0 && isPending) return <Loading what="the charts" height={560} />;
  if (charts.loss === null && charts.small.length === 0) return <NothingYet job={job} isLive={isLive} />;

  const spoilt = charts.loss?.[0] ? spoiltMark(charts.loss[0]) : null;
  const lossMarks = spoilt ? [...marks, spoilt] : marks;
  const span = picture.span ?? usualSpan(charts.loss?.[0]?.count ?? 0);
  const onRange = (wanted: Range | null) => change(rangeChange(axis, wanted));
  const download = `/api/jobs/${encodeURIComponent(job.id)}/metrics/export?format=csv&table=StepMetric`;
  const all = { axis, span, log, range, onRange, stretches, group: CURSOR, download };
  return (
    <div className={styles.charts}>
      <Controls picture={picture} span={span} onChange={change} />
      {charts.loss ? <LineChart {...all} title="Loss" series={charts.loss} marks={lossMarks} height={280} /> : null}
      <div className={styles.row}>
        {charts.small.map(({ title, series, format }) => (
          <LineChart
            key={title}
            {...all}
            title={title}
            series={series ?? []}
            format={format}
            tick={shortFigure}
            height={140}
          />
        ))}
      </div>
      <MachineCharts job={job} names={metrics.series} rows={rows} events={events} isLive={isLive} />
      {metrics.dropped_rows > 0 ? (
        <p className="quiet">
          This training recorded more than is kept: {figure(metrics.dropped_rows)} rows are missing.
        </p>
      ) : null}
    </div>
  );
}

function NothingYet({ job, isLive }: { readonly job: Job; readonly isLive: boolean }) {
  if (!isLive) {
    return (
      <Empty title="Nothing was measured">
        <p>The training ended before it had made a step, so there is nothing to draw.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No steps yet">
      <p>
        {job.state === "EXECUTING"
          ? "The training is being prepared. The charts begin with its first step."
          : "The charts begin with the first step of the training."}
      </p>
    </Empty>
  );
}

/** As many as the widest chart has pixels, in few sizes, so that a resized window seldom asks again. */
function columnsOfWindow(): number {
  return Math.min(2500, Math.max(500, Math.ceil(window.innerWidth / 500) * 500));
}
