import type { Job } from "~/api/documents";

const UNLIMITED_HOURS = 10 * 365 * 24; // what the server writes for no limit

/** Whether the job is stopped after some time; an adopted training often is not. */
export function hasTimeLimit(job: Job): boolean {
  return job.limits.max_hours < UNLIMITED_HOURS;
}
