/** Where a checkpoint lies, in words. */
import type { Artifact, Job } from "~/api/documents";

/** The checkpoint that the job's model is. */
export function bestOf(job: Job, checkpoints: readonly Artifact[]): Artifact | null {
  const model = job.catalogue?.sha256;
  const found = model ? checkpoints.find((one) => one.sha256 === model) : undefined;
  const byStep = checkpoints.filter((one) => one.step !== null && one.step === job.model_step && one.verified);
  return found ?? byStep.at(-1) ?? null;
}

export function placesOf(job: Job, file: Artifact, isBest: boolean): readonly string[] {
  const addresses = isBest ? [...(job.catalogue?.places ?? [])] : [];
  const stored = job.checkpoints.find((one) => one.path === file.path && one.attempt === file.attempt)?.location;
  if (stored && !addresses.includes(stored)) addresses.push(stored);
  const names = new Set(addresses.map(placeName));
  if (names.size > 0) return [...names];
  if (job.state !== "ENDED" && file.attempt === job.attempt) return ["on the machine"];
  return ["gone with the machine"];
}

function placeName(address: string): string {
  if (address.startsWith("hf://")) return "Hub";
  return address.startsWith("s3://") ? "bucket" : "home";
}
