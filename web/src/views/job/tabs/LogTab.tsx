import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { Job } from "~/api/documents";
import { planQuery } from "~/api/queries";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useAddressValue } from "~/frame/address";
import styles from "./log/Log.module.css";
import { feedOf, type LogFeed } from "./log/LogFeed";
import { LogLines } from "./log/LogLines";
import { LogToolbar } from "./log/LogToolbar";
import { sourceName } from "./log/sourceName";
import { useLogSearch } from "./log/useLogSearch";

export function LogTab({ job }: { readonly job: Job }) {
  const feed = useMemo(() => feedOf(job.id), [job.id]);
  const version = useSyncExternalStore(feed.subscribe, () => feed.version);
  const isOver = job.state === "ENDED";
  useEffect(() => {
    feed.isJobOver = isOver;
  }, [feed, isOver]);
  useEffect(() => feed.start(), [feed]);

  if (feed.book.length === 0) return <NothingYet job={job} feed={feed} />;
  return <Shown feed={feed} version={version} job={job} />;
}

function Shown({ job, feed, version }: { readonly job: Job; readonly feed: LogFeed; readonly version: number }) {
  const { data: plan } = useQuery(planQuery(job.id));
  const [line, setLine] = useAddressValue("line");
  const [wraps, setWraps] = useState(false);
  const [isFollowing, setFollowing] = useState(line === null);
  const [wanted, setWanted] = useState("");
  const search = useLogSearch(feed.book, wanted, version);
  const chosen = line === null || !/^\d+$/.test(line) ? null : Number(line) - 1;

  function goTo(index: number): void {
    setFollowing(false);
    setLine(index + 1);
  }

  return (
    <section aria-label="Log" className={styles.log}>
      <LogToolbar
        job={job}
        feed={feed}
        search={search}
        wanted={wanted}
        onWanted={setWanted}
        chosen={chosen}
        onGoTo={goTo}
        wraps={wraps}
        onWraps={setWraps}
        nameOf={(source) => sourceName(source, plan?.steps ?? [], job.attempt)}
      />
      {feed.problem ? <ProblemNote problem={feed.problem} onRetry={() => feed.retry()} /> : null}
      <LogLines
        book={feed.book}
        version={version}
        search={search}
        chosen={chosen}
        onChoose={goTo}
        wraps={wraps}
        isGrowing={feed.state !== "ended"}
        isFollowing={isFollowing}
        onFollow={setFollowing}
        nameOf={(source) => sourceName(source, plan?.steps ?? [], job.attempt)}
      />
    </section>
  );
}

function NothingYet({ job, feed }: { readonly job: Job; readonly feed: LogFeed }) {
  if (feed.problem) return <ProblemNote problem={feed.problem} onRetry={() => feed.retry()} />;
  if (feed.state === "loading") return <Loading what="the log" height={480} />;
  if (job.state === "ENDED") {
    return (
      <Empty title="There is no log">
        <p>The training wrote nothing before it ended, or its log was removed to save space.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No log yet">
      <p>It begins when the machine runs the first step of the plan. Lines appear here as they are written.</p>
      {feed.state === "lost" ? <p role="status">⚠ The connection is lost. Trying again.</p> : null}
    </Empty>
  );
}
