import type { Job } from "~/api/documents";

export function LogTab({ job }: { readonly job: Job }) {
  return <p>{job.name}</p>;
}
