import type { Job } from "~/api/documents";

export function AnalysisPanel({ job }: { readonly job: Job }) {
  return <p>{job.name}</p>;
}
