/** How the health of a training and the severity of a recommendation look: a mark and a word, never colour alone. */
import type { Look } from "~/text/states";

const HEALTH: Record<string, Look> = {
  good: { tone: "good", mark: "✓", word: "Good" },
  warning: { tone: "attention", mark: "▲", word: "Warning" },
  critical: { tone: "bad", mark: "✕", word: "Critical" },
};

const SEVERITY: Record<string, Look> = {
  critical: { tone: "bad", mark: "✕", word: "Critical" },
  warning: { tone: "attention", mark: "▲", word: "Warning" },
  info: { tone: "running", mark: "●", word: "Info" },
};

/** Of a job or an analysis; null: it was not analysed. */
export function healthLook(health: string | null | undefined): Look {
  return HEALTH[health ?? ""] ?? { tone: "waiting", mark: "?", word: health ? "Unknown" : "Not analysed" };
}

export function severityLook(severity: string): Look {
  return SEVERITY[severity] ?? { tone: "waiting", mark: "•", word: severity };
}
