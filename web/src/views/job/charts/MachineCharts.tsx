/** Memory and use of the machine over time, with zones where memory becomes short and marks of what happened. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { answer, api } from "~/api/client";
import type { Job, JobEvent, Rows } from "~/api/documents";
import { LineChart } from "~/charts/LineChart";
import type { Range } from "~/charts/series";
import { percent } from "~/text/format";
import { seriesQuery } from "../queries";
import { rangeChange, usePicture } from "../search";
import styles from "./JobCharts.module.css";
import { MEMORY_ZONES, machineSeries } from "./machineSeries";
import { machineNames } from "./names";
import { stalls, timeMarks } from "./runMarks";

interface Props {
  readonly job: Job;
  readonly names: readonly string[];
  readonly rows: Rows | undefined;
  readonly events: readonly JobEvent[];
  readonly isLive: boolean;
}

const COLUMNS = 1000;
const NO_SERIES: never[] = [];

export function MachineCharts({ job, names, rows, events, isLive }: Props) {
  const [{ axis, range }, change] = usePicture();
  const queries = useQueryClient();
  const wanted = useMemo(() => machineNames(names), [names]);
  const { data } = useQuery(seriesQuery(job.id, { names: wanted, axis, range, columns: COLUMNS, isLive }));
  const gpuGib = job.used.gpu_gib ?? job.quote.gpu_gib;
  const { memory, use } = useMemo(() => machineSeries(data?.series ?? NO_SERIES, gpuGib), [data, gpuGib]);
  const marks = useMemo(() => timeMarks(rows, events), [rows, events]);
  const now = Date.parse(job.as_of);
  const stretches = useMemo(() => stalls(events, "time", now), [events, now]);

  /** While the other charts count steps, a stretch of time means the steps that were made in it. */
  async function onRange(chosen: Range | null): Promise<void> {
    if (chosen === null || axis === "time") return change(rangeChange(axis, chosen));
    const query = { axis: "time", start: chosen.from, end: chosen.to } as const;
    const found = await queries.fetchQuery({
      queryKey: ["job", job.id, "summary", query],
      queryFn: () => answer(api.GET("/api/jobs/{job}/metrics/summary", { params: { path: { job: job.id }, query } })),
    });
    if (found.first_step !== null && found.last_step !== null && found.first_step < found.last_step) {
      change(rangeChange("step", { from: found.first_step, to: found.last_step }));
    }
  }

  if (memory.length === 0 && use.length === 0) return null;
  const shared = {
    axis: "time" as const,
    // Of a range of steps the server has already drawn only the time in which they were made.
    range: axis === "time" ? range : null,
    onRange: (chosen: Range | null) => void onRange(chosen),
    group: axis === "time" ? "job" : "machine",
    ends: [0, 100] as const,
    format: percent,
    stretches,
    height: 160,
    download: `/api/jobs/${encodeURIComponent(job.id)}/metrics/export?format=csv&table=MetricsSample`,
  };
  return (
    <div className={styles.pair}>
      {memory.length > 0 ? (
        <LineChart {...shared} title="Memory" series={memory} marks={marks} zones={MEMORY_ZONES}>
          <span className="quiet">amber from 85 %, red from 95 %</span>
        </LineChart>
      ) : null}
      {use.length > 0 ? <LineChart {...shared} title="Use of the machine" series={use} marks={marks} /> : null}
    </div>
  );
}
