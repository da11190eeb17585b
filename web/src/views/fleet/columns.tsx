/** The columns of the table of trainings: what they show, and from which width on. */
import type { ReactNode } from "react";
import type { OverviewRow } from "~/api/documents";
import { Progress } from "~/design/Progress";
import { Sparkline } from "~/design/Sparkline";
import { Badge, StateMark } from "~/design/StateMark";
import { When } from "~/design/When";
import { count, dollars, dollarsPerHour, duration, figure, finite, percent, speed, UNKNOWN } from "~/text/format";
import type { Tone } from "~/text/states";
import styles from "./Fleet.module.css";
import { shownOf } from "./rows";

export interface Column {
  readonly id: string;
  readonly label: string;
  /** The width of the window in pixels from which it is shown, unless the user chose otherwise. */
  readonly from: number;
  readonly isNumber?: boolean;
  readonly show: (row: OverviewRow) => ReactNode;
}

export const COLUMNS: readonly Column[] = [
  { id: "state", label: "State", from: 0, show: (row) => <StateMark shown={shownOf(row)} /> },
  { id: "progress", label: "Progress", from: 0, show: progressOf },
  { id: "step", label: "Step", from: 1900, isNumber: true, show: stepOf },
  { id: "loss", label: "Loss", from: 0, show: lossOf },
  { id: "gpu", label: "GPU", from: 1000, show: gpuOf },
  { id: "use", label: "GPU use", from: 1100, isNumber: true, show: (row) => now(row, percent(row.gpu_percent)) },
  { id: "memory", label: "GPU memory", from: 1200, isNumber: true, show: memoryOfRow },
  { id: "speed", label: "Speed", from: 1600, isNumber: true, show: (row) => speed(row.steps_per_second) },
  { id: "eta", label: "Time left", from: 700, isNumber: true, show: etaOf },
  {
    id: "price",
    label: "Per hour",
    from: 900,
    isNumber: true,
    show: (row) => now(row, dollarsPerHour(row.price_per_hour_usd)),
  },
  { id: "cost", label: "Cost", from: 0, isNumber: true, show: costOf },
  { id: "health", label: "Health", from: 1280, show: healthOf },
  { id: "recipe", label: "Recipe", from: 1750, show: (row) => row.recipe },
  { id: "owner", label: "Owner", from: 2100, show: (row) => row.owner ?? "me" },
  { id: "provider", label: "Provider", from: 2100, show: (row) => row.provider },
  { id: "created", label: "Created", from: 2300, isNumber: true, show: (row) => <When at={row.created_at} /> },
];

/** What only a training that goes on has: afterwards it is not unknown, there is none. */
function now(row: OverviewRow, text: string): string {
  return row.ended_at ? "" : text;
}

export function progressOf(row: OverviewRow): ReactNode {
  return <Progress percent={row.percent} label={`Progress of ${row.name}`} isOver={row.ended_at !== null} />;
}

function stepOf(row: OverviewRow): ReactNode {
  return row.step === null ? UNKNOWN : `${count(row.step)} / ${count(row.total_steps)}`;
}

export function lossOf(row: OverviewRow): ReactNode {
  return (
    <span className={styles.loss}>
      <span className={styles.figure}>{figure(row.loss)}</span>
      <Sparkline values={row.loss_trend} />
    </span>
  );
}

function gpuOf(row: OverviewRow): ReactNode {
  if (!row.gpu) return UNKNOWN;
  return row.gpus > 1 ? `${row.gpus} × ${row.gpu}` : row.gpu;
}

function memoryOfRow(row: OverviewRow): ReactNode {
  const { gpu_memory_used_gib: used, gpu_memory_total_gib: total } = row;
  return used === null || total === null ? now(row, UNKNOWN) : `${used.toFixed(1)} / ${total.toFixed(0)} GB`;
}

export function etaOf(row: OverviewRow): ReactNode {
  if (row.ended_at) return <When at={row.ended_at} />;
  // A training that stands still is not ready when its last readings promised.
  return duration(row.needs?.kind === "stall" ? null : finite(row.eta_seconds));
}

/** What it cost so far, against what was quoted. */
export function costOf(row: OverviewRow): ReactNode {
  const quoted = row.ended_at ? `quoted ${dollars(row.quoted_usd)}` : `of ~${dollars(row.quoted_usd)}`;
  return (
    <span title={`limit ${dollars(row.max_spend_usd)}`}>
      {dollars(row.cost_usd)} <span className="quiet">{quoted}</span>
    </span>
  );
}

const HEALTH_TONES: Readonly<Record<string, Tone>> = { good: "good", warning: "attention", critical: "bad" };

function healthOf(row: OverviewRow): ReactNode {
  if (!row.health) return UNKNOWN;
  return <Badge tone={HEALTH_TONES[row.health] ?? "waiting"}>{row.health}</Badge>;
}
