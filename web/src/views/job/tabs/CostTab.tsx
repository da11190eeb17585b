import type { Job } from "~/api/documents";

export function CostTab({ job }: { readonly job: Job }) {
  return <p>{job.name}</p>;
}
