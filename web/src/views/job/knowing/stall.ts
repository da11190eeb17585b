/** The verdict of the stall watch, as its events tell it. */
import type { JobEvent } from "~/api/documents";
import { count, duration, speed } from "~/text/format";
import { sentence } from "~/text/sentence";

export interface Stall {
  /** When it was found, in milliseconds since 1970. */
  readonly since: number;
  /** When the training is stopped unless it goes on; null: it is not stopped. */
  readonly stopsAt: number | null;
  readonly reason: string;
  readonly confidence: string | null;
  readonly step: number | null;
  readonly pace: number | null;
  readonly usualPace: number | null;
  readonly eta: number | null;
  readonly checkpointStep: number | null;
}

const OVER = new Set(["stall_cleared", "terminate", "terminated", "outcome", "attempt_failed"]);

/** The stall that lasts; null if there is none. */
export function stallOf(events: readonly JobEvent[]): Stall | null {
  const place = events.findLastIndex(({ kind }) => kind === "stall_flagged");
  const flagged = events[place];
  if (flagged === undefined || events.slice(place + 1).some(({ kind }) => OVER.has(kind))) return null;
  const since = Date.parse(flagged.at);
  const grace = number(flagged.grace_minutes);
  return {
    since,
    stopsAt: grace === null ? null : since + grace * 60_000,
    reason: sentence(typeof flagged.reason === "string" ? flagged.reason : (flagged.sentence ?? "")),
    confidence: typeof flagged.confidence === "string" ? flagged.confidence : null,
    step: number(flagged.currentStep),
    pace: number(flagged.steps_per_second),
    usualPace: number(flagged.usual_steps_per_second),
    eta: number(flagged.eta_seconds),
    checkpointStep: number(flagged.checkpointStep),
  };
}

/** The numbers that the verdict rests on, with their names; what is not known is left out. */
export function numbersOf({ step, pace, usualPace, eta, confidence }: Stall): [string, string][] {
  const found: [string, string][] = [];
  if (step !== null) found.push(["Last step", count(step)]);
  const usually = usualPace !== null && usualPace > 0 ? speed(usualPace) : null;
  if (pace !== null) {
    const now = pace > 0 ? speed(pace) : "no progress";
    found.push(["Pace", usually === null ? now : `${now}, usually ${usually}`]);
  } else if (usually !== null) found.push(["Usual pace", usually]);
  if (eta !== null) found.push(["Time left", `${duration(eta)} by its last readings`]);
  if (confidence !== null) found.push(["Certainty", confidence]);
  return found;
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
