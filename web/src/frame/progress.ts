/** Whose progress the title and the icon show: that of the training on the page, else of the only one that runs. */
import type { OverviewRow } from "~/api/documents";
import { percent } from "~/text/format";

export interface ShownProgress {
  readonly text: string;
  readonly percent: number | null;
}

const NOTHING: ShownProgress = { text: "", percent: null };

/** `job` is the id in the address of a training's page, or the beginning of it or its name; null elsewhere. */
export function progressToShow(rows: readonly OverviewRow[], job: string | null): ShownProgress {
  const running = rows.filter((row) => row.ended_at === null && row.shown !== "QUEUED");
  const [only, ...others] =
    job === null ? running : running.filter((row) => row.id === job || row.name === job || row.id.startsWith(job));
  if (only === undefined) return NOTHING;
  if (job === null && others.length > 0) return { text: `${running.length} running`, percent: null };
  const known = only.percent ?? null;
  return { text: known === null ? "" : percent(known), percent: known === null ? null : Math.floor(known) };
}
