import type { Job } from "~/api/documents";

export function PlanTab({ job }: { readonly job: Job }) {
  return <p>{job.name}</p>;
}
