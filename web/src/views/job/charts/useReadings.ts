/** The last readings of a training, and each new one as it is read. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Job, Reading } from "~/api/documents";
import { followPages } from "~/api/pages";
import { joined } from "~/charts/appending";
import { readingsQuery } from "../queries";

const MOST = 5_000;
const NONE: readonly Reading[] = [];

export function useReadings(job: Job): readonly Reading[] {
  const isLive = job.state !== "ENDED";
  const { data } = useQuery({ ...readingsQuery(job.id), enabled: isLive });
  const [followed, setFollowed] = useState<readonly Reading[]>(NONE);
  const isKnown = data !== undefined;
  const last = data?.items[data.items.length - 1]?.seq ?? 0;

  // It begins behind the first answer; later answers only fill gaps.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a later answer must not begin it anew
  useEffect(() => {
    if (!isLive || !isKnown) return;
    return followPages<Reading>({
      pathOf: (after) => `/api/jobs/${encodeURIComponent(job.id)}/readings?exact=true&limit=1000&after=${after}`,
      after: last,
      isOver: () => false,
      onItems: (fresh) => setFollowed((known) => joined(known, fresh, MOST)),
    });
  }, [job.id, isLive, isKnown]);

  if (!isLive || !data) return NONE;
  const first = followed[0]?.seq ?? Number.POSITIVE_INFINITY;
  const earlier = data.items.filter(({ seq }) => seq < first);
  const newest = data.items.filter(({ seq }) => seq > (followed[followed.length - 1]?.seq ?? 0) && seq >= first);
  return [...earlier, ...followed, ...newest];
}
