/** The ten stages of a job for people, and which of them it has come to. */
import type { Job, JobEvent } from "~/api/documents";

/** As the server names them, with the words of the page. */
export const STAGES = [
  ["queued", "Queued"],
  ["claimed", "Machine"],
  ["provisioned", "Data"],
  ["dataset synced", "Set-up"],
  ["training", "Training"],
  ["model uploaded", "Saving"],
  ["samples", "Samples"],
  ["registered", "Catalogue"],
  ["instance terminated", "Releasing"],
  ["completed", "Completed"],
] as const;

const TRAINING = 4;
const LAST = STAGES.length - 1;

const STAGE_OF_STATE: Record<string, number> = {
  QUEUED: 0,
  PROVISIONING: 1,
  TRANSFERRING_DATA: 2,
  EXECUTING: TRAINING,
  FETCHING_RESULTS: 5,
  FINALIZING: 6,
};

export interface Reached {
  /** The number of the stage that it is in, or in which it ended. */
  readonly at: number;
  readonly is: "going on" | "done" | "ended early";
}

/** A job that ended early is shown where it came to: the events say it, since its stage is that its machine is gone. */
export function reachedStage(job: Job, events: readonly JobEvent[]): Reached {
  if (job.state !== "ENDED" && job.outcome === null) return { at: going(job), is: "going on" };
  if (job.outcome === "COMPLETED" && job.state === "ENDED") return { at: LAST, is: "done" };
  if (job.outcome === "COMPLETED") return { at: LAST - 1, is: "going on" };
  let at = 0;
  for (const event of events) {
    const stage = event.kind === "state" ? STAGE_OF_STATE[String(event.to)] : undefined;
    if (stage !== undefined) at = stage;
  }
  return { at, is: "ended early" };
}

function going(job: Job): number {
  // Set-up and training are one state: the first step of the training tells them apart.
  if (job.state === "EXECUTING" && job.progress.step === null) return TRAINING - 1;
  if (job.state === "FETCHING_RESULTS") return TRAINING + 1;
  if (job.state === "RELEASING") return LAST - 1;
  const named = STAGES.findIndex(([name]) => name === job.stage);
  return named < 0 ? TRAINING : named;
}
