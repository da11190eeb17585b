import type { Job } from "~/api/documents";

export function CheckpointsTab({ job }: { readonly job: Job }) {
  return <p>{job.name}</p>;
}
