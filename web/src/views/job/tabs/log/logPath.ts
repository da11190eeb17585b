const PIECES = 500;

/** A page of the log, of the pieces behind the numbered one. */
export const logPage = (job: string, after: number) =>
  `/api/jobs/${encodeURIComponent(job)}/logs?exact=true&limit=${PIECES}&after=${after}`;
