/** The timeline of an analysis as a chart of memory: the line, what happened, and from where on it is dangerous. */
import type { Analysis, Job, TimelinePoint } from "~/api/documents";
import type { Mark, MarkKind, Zone } from "~/charts/marks";
import type { ChartSeries } from "~/charts/series";
import { percent } from "~/text/format";

/** Events that are worth a mark; the ends of what began and single pictures are not. */
const EVENTS: Record<string, { readonly kind: MarkKind; readonly words: string }> = {
  oom_error: { kind: "problem", words: "Out of memory" },
  batch_size_adjustment: { kind: "event", words: "Batch size changed" },
  sampling_start: { kind: "sample", words: "Sampling" },
  save_start: { kind: "checkpoint", words: "Saving" },
  training_start: { kind: "event", words: "Training started" },
  training_end: { kind: "event", words: "Training ended" },
};

const USUAL = { warning: 0.85, critical: 0.95 };

export function memorySeries(timeline: readonly TimelinePoint[], label: string): ChartSeries {
  const points = timeline.filter((point) => isNumber(point.timestamp) && isNumber(point.memory_gb));
  return {
    key: "memory",
    label,
    x: points.map((point) => point.timestamp ?? 0),
    y: points.map((point) => point.memory_gb ?? null),
    smooth: false,
  };
}

export function eventMarks(timeline: readonly TimelinePoint[]): readonly Mark[] {
  return timeline.flatMap(({ timestamp, event, step }) => {
    const known = EVENTS[event ?? ""];
    if (!known || !isNumber(timestamp)) return [];
    const label = isNumber(step) ? `${known.words} at step ${step.toLocaleString("en-US")}` : known.words;
    return [{ x: timestamp, kind: known.kind, label }];
  });
}

/** From 85 % and 95 % on, unless the job says otherwise. */
export function memoryZones(job: Job, analysis: Analysis): readonly Zone[] {
  const total = analysis.summary.total_memory_gb;
  if (total === null) return [];
  const warning = share(job.monitoring.memory_warning_threshold) ?? USUAL.warning;
  const critical = share(job.monitoring.memory_critical_threshold) ?? USUAL.critical;
  return [
    { from: warning * total, kind: "warning", label: `warning from ${percent(warning * 100)}` },
    { from: critical * total, kind: "critical", label: `critical from ${percent(critical * 100)}` },
  ];
}

function share(value: unknown): number | null {
  return isNumber(value) && value > 0 && value <= 1 ? value : null;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
