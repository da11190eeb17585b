/** How the states and outcomes of a job look: never by colour alone, always with a mark and a word. */
export type Tone = "running" | "good" | "waiting" | "attention" | "bad";

export interface Look {
  readonly tone: Tone;
  readonly mark: string;
  readonly word: string;
}

const LOOKS: Record<string, Look> = {
  QUEUED: { tone: "waiting", mark: "○", word: "Queued" },
  PROVISIONING: { tone: "running", mark: "◔", word: "Getting a machine" },
  TRANSFERRING_DATA: { tone: "running", mark: "◑", word: "Sending data" },
  EXECUTING: { tone: "running", mark: "●", word: "Training" },
  STALLED: { tone: "attention", mark: "▲", word: "Stalled" },
  FETCHING_RESULTS: { tone: "running", mark: "◕", word: "Saving the model" },
  FINALIZING: { tone: "running", mark: "◕", word: "Publishing" },
  RELEASING: { tone: "running", mark: "◕", word: "Releasing the machine" },
  COMPLETED: { tone: "good", mark: "✓", word: "Completed" },
  INCOMPLETE: { tone: "attention", mark: "◧", word: "Stopped, model kept" },
  CANCELLED: { tone: "waiting", mark: "⊘", word: "Cancelled" },
  FAILED: { tone: "bad", mark: "✕", word: "Failed" },
  FAILED_PROVISIONING: { tone: "bad", mark: "✕", word: "No machine" },
  NEEDS_RECOVERY: { tone: "attention", mark: "▲", word: "Out of reach" },
};

/** What a job's state is shown as: a stall matters more than that it trains. */
export function shownOr(shown: string, isStalled: boolean): string {
  return isStalled && shown === "EXECUTING" ? "STALLED" : shown;
}

/** `shown` of a job; a state of a newer version shows its own name. */
export function lookOf(shown: string): Look {
  return LOOKS[shown] ?? { tone: "running", mark: "●", word: shown.toLowerCase().replaceAll("_", " ") };
}
