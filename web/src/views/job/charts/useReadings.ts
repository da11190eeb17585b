/** The last readings of a training, and each new one as it is read. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Job, Reading } from "~/api/documents";
import { openStream } from "~/api/stream";
import { joined } from "~/charts/appending";
import { readingsQuery } from "../queries";

const MOST = 5_000;
const GATHER_MS = 250;
const NONE: readonly Reading[] = [];

export function useReadings(job: Job): readonly Reading[] {
  const isLive = job.state !== "ENDED";
  const { data } = useQuery({ ...readingsQuery(job.id), enabled: isLive });
  const [streamed, setStreamed] = useState<readonly Reading[]>(NONE);
  const isKnown = data !== undefined;
  const last = data?.items[data.items.length - 1]?.seq ?? 0;

  // The stream begins behind the first answer; later answers, which come when the stream is lost, only fill gaps.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a later answer must not open another stream
  useEffect(() => {
    if (!isLive || !isKnown) return;
    let waiting: Reading[] = [];
    let timer: number | undefined;
    const close = openStream<Reading>(
      `/api/jobs/${encodeURIComponent(job.id)}/readings`,
      {
        onItem: (reading) => {
          waiting.push(reading);
          timer ??= window.setTimeout(() => {
            const fresh = waiting;
            waiting = [];
            timer = undefined;
            setStreamed((known) => joined(known, fresh, MOST));
          }, GATHER_MS);
        },
      },
      last,
    );
    return () => {
      window.clearTimeout(timer);
      close();
    };
  }, [job.id, isLive, isKnown]);

  if (!isLive || !data) return NONE;
  const first = streamed[0]?.seq ?? Number.POSITIVE_INFINITY;
  const earlier = data.items.filter(({ seq }) => seq < first);
  const newest = data.items.filter(({ seq }) => seq > (streamed[streamed.length - 1]?.seq ?? 0) && seq >= first);
  return [...earlier, ...streamed, ...newest];
}
