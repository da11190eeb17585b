import { useMemo } from "react";
import type { Analysis, Job } from "~/api/documents";
import { LineChart } from "~/charts/LineChart";
import { MARK_SIGNS } from "~/charts/marks";
import { When } from "~/design/When";
import { counted, gigabytes, isoTime } from "~/text/format";
import styles from "./Analysis.module.css";
import { eventMarks, memorySeries, memoryZones } from "./memory";

const POOLS: Record<string, string> = { gpu: "GPU memory", system: "System memory", container: "Container memory" };

/** Memory of the whole run with what happened in it, over the zones that are dangerous. */
export function MemoryTimeline({ job, analysis }: { readonly job: Job; readonly analysis: Analysis }) {
  const { metrics_timeline, summary } = analysis;
  const name = POOLS[summary.memory_pool ?? ""] ?? "Memory";
  const series = useMemo(() => memorySeries(metrics_timeline, name), [metrics_timeline, name]);
  const marks = useMemo(() => eventMarks(metrics_timeline), [metrics_timeline]);
  const zones = useMemo(() => memoryZones(job, analysis), [job, analysis]);
  if (series.x.length === 0) {
    return (
      <section aria-labelledby="memory-timeline">
        <h3 id="memory-timeline">Memory over time</h3>
        <p className="quiet">No memory was measured in this training.</p>
      </section>
    );
  }
  const top = Math.max(summary.total_memory_gb ?? 0, summary.peak_memory_gb ?? 0);
  return (
    <section aria-label="Memory over time">
      <LineChart
        title={`${name} over time`}
        level={3}
        axis="time"
        series={[series]}
        marks={marks}
        zones={zones}
        ends={top > 0 ? [0, top] : undefined}
        format={gigabytes}
      />
      {zones.length > 0 ? (
        <p className={styles.zones}>
          {zones.map((zone) => (
            <span key={zone.kind} className={styles[zone.kind]}>
              {zone.label}
            </span>
          ))}
        </p>
      ) : null}
      {marks.length > 0 ? (
        <details className={styles.events}>
          <summary>{counted(marks.length, "event")} in this chart</summary>
          <ol>
            {marks.map((mark, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the events of an analysis do not move
              <li key={place}>
                <span aria-hidden>{MARK_SIGNS[mark.kind]}</span> {mark.label},{" "}
                <span className="quiet">
                  <When at={isoTime(mark.x)} />
                </span>
              </li>
            ))}
          </ol>
        </details>
      ) : null}
    </section>
  );
}
