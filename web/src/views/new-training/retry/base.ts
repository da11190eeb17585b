import type { Job, Terms } from "~/api/documents";

/** The job that is run again, and the terms of a new one like it before anything is typed. */
export interface RetryBase {
  readonly job: Job;
  readonly terms: Terms;
}
