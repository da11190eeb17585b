import { useQuery } from "@tanstack/react-query";
import type { Job, Recommendation, TimelinePoint } from "~/api/documents";
import { figure, gigabytes, percent } from "~/text/format";
import { measuredQuery, seriesQuery } from "~/views/job/measured";
import { EvidenceSpark } from "./EvidenceSpark";
import { memorySeries } from "./memory";

interface Props {
  readonly job: Job;
  readonly recommendation: Recommendation;
  readonly timeline: readonly TimelinePoint[];
}

interface Proof {
  readonly title: string;
  readonly series: string;
  readonly format: (value: number) => string;
  readonly ends?: readonly [number, number];
}

const LOSS: Proof = { title: "Loss", series: "loss", format: figure };
const GPU: Proof = { title: "GPU load", series: "gpu0.utilization_percent", format: percent, ends: [0, 100] };
const STEP: Proof = { title: "Time of a step", series: "step_time_seconds", format: (value) => `${figure(value)} s` };
const CLOCK: Proof = { title: "GPU clock", series: "gpu0.clock_mhz", format: (value) => `${figure(value)} MHz` };

/** Which series shows what a rule found; rules of memory have the timeline itself. */
const PROOFS: Record<string, Proof> = {
  nan_learning_rate: LOSS,
  nan_half_precision: LOSS,
  diverged: LOSS,
  learning_rate_low: LOSS,
  overfit: LOSS,
  gpu_starved: GPU,
  gpu_idle: GPU,
  gpu_throttled: CLOCK,
  workers_idle: GPU,
  sampling_time: STEP,
  saving_time: STEP,
};

/** The series behind a recommendation, small. Nothing where it was not recorded. */
export function EvidenceChart({ job, recommendation, timeline }: Props) {
  const { rule, evidence } = recommendation;
  if (rule.startsWith("memory_")) {
    const { x, y } = memorySeries(timeline, "Memory");
    return <EvidenceSpark title="Memory" x={x} y={y} format={gigabytes} limit={limitIn(evidence, "GB")} />;
  }
  const proof = PROOFS[rule];
  return proof ? <SeriesProof job={job} proof={proof} /> : null;
}

function SeriesProof({ job, proof }: { readonly job: Job; readonly proof: Proof }) {
  const measured = useQuery(measuredQuery(job.id));
  const isThere = measured.data?.series.includes(proof.series) ?? false;
  const drawn = useQuery(seriesQuery(job.id, { names: [proof.series], columns: 300, enabled: isThere }));
  const found = drawn.data?.series[0];
  if (!found) return null;
  return <EvidenceSpark title={proof.title} x={found.x} y={found.y} format={proof.format} ends={proof.ends} />;
}

/** The limit of the first fact in this unit: that one is about the whole. */
function limitIn(evidence: Recommendation["evidence"], unit: string): number | null {
  const [fact] = evidence;
  return fact?.unit === unit && typeof fact.threshold === "number" ? fact.threshold : null;
}
