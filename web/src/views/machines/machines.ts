/** What can be said of a machine, in words. Pure. */
import type { Machine } from "~/api/documents";
import { dollars, dollarsPerHour, duration } from "~/text/format";
import type { Tone } from "~/text/states";

/** Whether a sweep would act on it, or a person should: nothing that runs explains why it still bills. */
export function isUnexplained(machine: Machine): boolean {
  return machine.act !== "leave";
}

export function gpusOf(machine: Machine): string | null {
  if (!machine.gpu) return null;
  return (machine.gpus ?? 0) > 1 ? `${machine.gpus} × ${machine.gpu}` : machine.gpu;
}

/** `has billed for 3 h (about $0.93)`. */
export function billedFor(machine: Machine, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(machine.created_at)) / 1000);
  const cost = (seconds / 3600) * machine.price_per_hour_usd;
  return `has billed for ${duration(seconds)}${cost > 0 ? ` (about ${dollars(cost)})` : ""}`;
}

/** `RTX 4090, vastai, $0.31/h`. */
export function aboutMachine(machine: Machine): string {
  return [gpusOf(machine), machine.provider, dollarsPerHour(machine.price_per_hour_usd)].filter(Boolean).join(", ");
}

const STATUS_LOOKS: Readonly<Record<string, readonly [Tone, string, string]>> = {
  CREATING: ["running", "◔", "Starting"],
  RUNNING: ["running", "●", "Running"],
  STOPPED: ["waiting", "◌", "Stopped"],
  FAILED: ["bad", "✕", "Failed"],
  OFFLINE: ["attention", "▲", "Offline"],
  UNKNOWN: ["waiting", "?", "Unknown"],
};

export function statusLook(status: string): readonly [Tone, string, string] {
  return STATUS_LOOKS[status] ?? ["waiting", "?", status.toLowerCase()];
}

const ACT_WORDS: Readonly<Record<string, readonly [Tone, string]>> = {
  leave: ["waiting", "leave it"],
  destroy: ["bad", "destroy it"],
  stop: ["attention", "stop it, keep its disk"],
  alert: ["attention", "alert the operators"],
};

/** What a sweep would do. */
export function actWords(act: string): readonly [Tone, string] {
  return ACT_WORDS[act] ?? ["waiting", act];
}
