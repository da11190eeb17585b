import type { Job } from "~/api/documents";

export function Samples({ job }: { readonly job: Job }) {
  return <p>{job.name}</p>;
}
