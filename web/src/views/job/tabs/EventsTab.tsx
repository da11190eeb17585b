import type { Job } from "~/api/documents";

export function EventsTab({ job }: { readonly job: Job }) {
  return <p>{job.name}</p>;
}
