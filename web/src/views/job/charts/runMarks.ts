/** What happened to a run, as marks and shaded stretches of its charts. */
import type { Job, JobEvent, Rows } from "~/api/documents";
import type { Mark, Stretch } from "~/charts/marks";
import type { ChartSeries } from "~/charts/series";
import { count } from "~/text/format";
import type { JobAxis } from "../search";

const KINDS: Record<string, { kind: Mark["kind"]; label: string }> = {
  save_end: { kind: "checkpoint", label: "checkpoint" },
  sampling_start: { kind: "sample", label: "samples" },
  batch_size_adjustment: { kind: "event", label: "batch size changed" },
  oom_error: { kind: "problem", label: "out of memory" },
};

/** Over time: what the training recorded, and what the watch found. */
export function timeMarks(rows: Rows | undefined, events: readonly JobEvent[] = []): Mark[] {
  const found = events.filter(({ kind }) => kind === "anomaly");
  const anomalies = found.map((event) => ({
    x: Date.parse(event.at) / 1000,
    kind: event.reaction === "note" ? ("event" as const) : ("problem" as const),
    label: event.sentence ?? "anomaly",
  }));
  return [...recorded(rows), ...anomalies].sort((a, b) => a.x - b.x);
}

function recorded(rows: Rows | undefined): Mark[] {
  const types = rows?.columns.event_type ?? [];
  const times = rows?.columns.timestamp ?? [];
  const details = rows?.columns.details ?? [];
  return types.flatMap((type, place) => {
    const known = KINDS[String(type)];
    const at = times[place];
    if (known === undefined || typeof at !== "number") return [];
    return [{ x: at, kind: known.kind, label: labelOf(known.label, details[place]) }];
  });
}

/** Over steps: the files that the training wrote, and what it recorded. */
export function stepMarks(job: Job, rows: Rows | undefined): Mark[] {
  const marks: Mark[] = [];
  const seen = new Set<string>();
  for (const { kind, step } of job.checkpoints) {
    if (step === null || step === undefined || (kind !== "checkpoint" && kind !== "sample")) continue;
    if (seen.has(`${kind} ${step}`)) continue;
    seen.add(`${kind} ${step}`);
    marks.push({ x: step, kind, label: `${kind === "sample" ? "samples" : "checkpoint"} of step ${count(step)}` });
  }
  const types = rows?.columns.event_type ?? [];
  types.forEach((type, place) => {
    const known = KINDS[String(type)];
    const step = stepOf(rows?.columns.details?.[place]);
    if (step === null || known === undefined || known.kind === "checkpoint" || known.kind === "sample") return;
    marks.push({ x: step, kind: known.kind, label: labelOf(known.label, rows?.columns.details?.[place]) });
  });
  return marks.sort((a, b) => a.x - b.x);
}

/** Where the loss stopped being a number and stayed so; null if it did not. */
export function spoiltMark({ x, y }: ChartSeries): Mark | null {
  const last = y.findLastIndex((value) => value !== null);
  const at = x[last + 1];
  return last < 0 || at === undefined
    ? null
    : { x: at, kind: "problem", label: "the loss is not a number from here on" };
}

/** From each flag of the stall watch to when it was cleared, or until `now`. */
export function stalls(events: readonly JobEvent[], axis: JobAxis, now: number): Stretch[] {
  const found: Stretch[] = [];
  let flagged: JobEvent | null = null;
  const close = (until: number, last: JobEvent | null) => {
    if (flagged === null) return;
    const from = axis === "time" ? Date.parse(flagged.at) / 1000 : numberOf(flagged.currentStep);
    const to = axis === "time" ? until / 1000 : (numberOf(last?.currentStep) ?? from);
    if (from !== null && to !== null) found.push({ from, to: Math.max(from, to), label: "stalled" });
    flagged = null;
  };
  for (const event of events) {
    if (event.kind === "stall_flagged") flagged = event;
    if (event.kind === "stall_cleared" || event.kind === "terminate" || event.kind === "outcome") {
      close(Date.parse(event.at), event);
    }
  }
  close(now, null);
  return found;
}

function labelOf(label: string, details: unknown): string {
  const step = stepOf(details);
  return step === null ? label : `${label}, step ${count(step)}`;
}

/** Details are JSON that a training wrote: anything may be in them. */
function stepOf(details: unknown): number | null {
  if (typeof details !== "string") return null;
  try {
    const found: unknown = JSON.parse(details);
    return typeof found === "object" && found !== null && "step" in found ? numberOf(found.step) : null;
  } catch {
    return null;
  }
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
