/** The kinds of messages, in words. */
import type { Message } from "~/api/documents";
import type { Tone } from "~/text/states";

interface Kind {
  readonly word: string;
  readonly tone: Tone;
}

/** By the names that the server gives them and that users mute. */
export const KINDS: Readonly<Record<string, Kind>> = {
  start: { word: "Started", tone: "running" },
  milestone: { word: "Progress", tone: "running" },
  epoch: { word: "Epoch", tone: "running" },
  completed: { word: "Completed", tone: "good" },
  incomplete: { word: "Stopped early", tone: "attention" },
  failed: { word: "Failed", tone: "bad" },
  cancelled: { word: "Cancelled", tone: "waiting" },
  stall: { word: "Stalled", tone: "attention" },
  stall_cleared: { word: "Progress resumed", tone: "good" },
  terminated: { word: "Stopped by a rule", tone: "bad" },
  anomaly: { word: "Anomaly", tone: "attention" },
  health: { word: "Health", tone: "attention" },
  soft_limit: { word: "Near its limit", tone: "attention" },
  silence: { word: "Out of reach", tone: "attention" },
  provisioning: { word: "Waits for a machine", tone: "waiting" },
  release: { word: "Machine not released", tone: "bad" },
  parked: { word: "Machine parked", tone: "attention" },
  low_credit: { word: "Low credit", tone: "attention" },
  settled: { word: "Settled", tone: "waiting" },
  daily_cap: { word: "Daily limit", tone: "attention" },
  spending: { word: "Spending", tone: "attention" },
  settings: { word: "Settings", tone: "attention" },
  internal_error: { word: "Internal error", tone: "bad" },
  machine: { word: "Machine", tone: "attention" },
  message: { word: "Message", tone: "waiting" },
};

/** A kind of a newer version shows its own name. */
export function kindOf(message: Pick<Message, "kind">): Kind {
  return KINDS[message.kind] ?? { word: message.kind.replaceAll("_", " "), tone: "waiting" };
}
