/** Events by what they are about, so that the money or the machine can be shown alone. */
import type { JobEvent } from "~/api/documents";

export const GROUPS = ["state", "machine", "data", "training", "files", "money"] as const;
export type Group = (typeof GROUPS)[number];

export const GROUP_NAMES: Readonly<Record<Group, string>> = {
  state: "State and requests",
  machine: "Machine",
  data: "Data",
  training: "Training",
  files: "Checkpoints and results",
  money: "Money",
};

const KINDS: Readonly<Record<string, Group>> = {
  rental_requested: "machine",
  rental_held: "machine",
  surplus_found: "machine",
  waiting_for_offer: "machine",
  waiting_for_turn: "machine",
  other_offer: "machine",
  create_refused: "machine",
  create_unanswered: "machine",
  machine_checked: "machine",
  logged_in: "machine",
  host_key_unverified: "machine",
  installing: "machine",
  installed: "machine",
  machine_started: "machine",
  machine_parked: "machine",
  disk_unwritable: "machine",
  unreachable: "machine",
  cleanup: "machine",
  destroy_failed: "machine",
  rental_gone: "machine",
  data_verified: "data",
  data_pulled: "data",
  data_already_there: "data",
  transfer: "data",
  transfer_failed: "data",
  secret_held_back: "data",
  step: "training",
  training_started: "training",
  resumed: "training",
  milestone: "training",
  epoch_ended: "training",
  stall_flagged: "training",
  stall_cleared: "training",
  terminate: "training",
  terminated: "training",
  anomaly: "training",
  health_failed: "training",
  health_well: "training",
  analysed: "training",
  analysis_failed: "training",
  log_thinned: "training",
  stop_failed: "training",
  stop_without_effect: "training",
  save_asked: "files",
  save_ended: "files",
  sample_ended: "files",
  checkpoint_safe: "files",
  samples_collected: "files",
  collect_failed: "files",
  files_refused: "files",
  fetch_failed: "files",
  results_incomplete: "files",
  model_safe: "files",
  model_broken: "files",
  delivery_failed: "files",
  published: "files",
  samples_published: "files",
  card_published: "files",
  catalogued: "files",
  registration: "files",
  settled: "money",
};

export function groupOf(event: JobEvent): Group {
  // The alert of a budget is about money, whatever else an alert may be.
  if (event.kind === "alert") return /budget|credit|spend|money|limit/i.test(event.sentence ?? "") ? "money" : "state";
  return KINDS[event.kind] ?? "state";
}

export type Weight = "bad" | "attention" | "good" | null;

const BAD = new Set([
  "attempt_failed",
  "terminate",
  "model_broken",
  "stop_without_effect",
  "results_incomplete",
  "tripped",
]);
const ATTENTION = new Set([
  "alert",
  "anomaly",
  "stall_flagged",
  "unreachable",
  "health_failed",
  "machine_parked",
  "disk_unwritable",
  "surplus_found",
  "files_refused",
  "host_key_unverified",
  "waiting_for_offer",
]);

/** Whether an event is an important one. */
export function weightOf(event: JobEvent): Weight {
  const told = event as JobEvent & Readonly<Record<string, unknown>>;
  if (event.kind === "outcome")
    return told.outcome === "COMPLETED" ? "good" : told.outcome === "FAILED" ? "bad" : "attention";
  if (event.kind === "step" && told.state === "failed") return "bad";
  if (event.kind === "model_safe") return "good";
  if (BAD.has(event.kind)) return "bad";
  return ATTENTION.has(event.kind) || event.kind.endsWith("_failed") ? "attention" : null;
}
