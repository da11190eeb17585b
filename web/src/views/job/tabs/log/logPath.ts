const PIECES = 500;

export const logPath = (job: string) => `/api/jobs/${encodeURIComponent(job)}/logs?exact=true`;

/** A page of the log, of the pieces behind the numbered one. */
export const logPage = (job: string, after: number) => `${logPath(job)}&limit=${PIECES}&after=${after}`;
