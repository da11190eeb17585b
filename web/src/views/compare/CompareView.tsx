import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { Comparison } from "~/api/documents";
import { Button } from "~/design/Button";
import { Dialog } from "~/design/Dialog";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useTitle } from "~/frame/title";
import { counted } from "~/text/format";
import styles from "./Compare.module.css";
import { ComparedCharts } from "./ComparedCharts";
import { ComparedSamples } from "./ComparedSamples";
import { MOST_RUNS, useComparedJobs, useRuns } from "./comparedJobs";
import { Differences } from "./Differences";
import { NothingToCompare } from "./NothingToCompare";
import { Outcomes } from "./Outcomes";
import { RunPicker } from "./RunPicker";

/** Runs as columns: what differs, their charts over each other, their samples, and what came of them. */
export function CompareView() {
  useTitle("Compare");
  const [given, setJobs] = useComparedJobs();
  const jobs = given.slice(0, MOST_RUNS);
  const comparison = useQuery({
    queryKey: ["comparison", jobs],
    queryFn: () => answer(api.GET("/api/compare", { params: { query: { jobs: [...jobs] } } })),
    enabled: jobs.length > 1,
    placeholderData: keepPreviousData,
    // Running jobs change; the events of ended ones do not come.
    refetchInterval: (query) => (query.state.data?.jobs.every(isOver) ? false : 5_000),
  });
  if (jobs.length < 2) {
    return (
      <>
        <h1>Compare</h1>
        <NothingToCompare chosen={jobs} onChoose={setJobs} />
      </>
    );
  }
  return (
    <>
      {given.length > MOST_RUNS ? (
        <p className={styles.notice}>
          The address names {given.length} runs; the first {MOST_RUNS} are compared.
        </p>
      ) : null}
      {comparison.error && !comparison.data ? (
        <>
          <h1>Compare</h1>
          <ProblemNote problem={comparison.error} onRetry={() => void comparison.refetch()} />
          <NothingToCompare chosen={[]} onChoose={setJobs} />
        </>
      ) : comparison.data ? (
        <Compared comparison={comparison.data} onJobs={setJobs} problem={comparison.error} />
      ) : (
        <>
          <h1>Compare</h1>
          <Loading what="the comparison" height={480} />
        </>
      )}
    </>
  );
}

interface ComparedProps {
  readonly comparison: Comparison;
  readonly onJobs: (jobs: readonly string[]) => void;
  readonly problem: unknown;
}

function Compared({ comparison, onJobs, problem }: ComparedProps) {
  const [isPicking, setPicking] = useState(false);
  const runs = useRuns(comparison.jobs);
  const ids = comparison.jobs.map((job) => job.id);
  const isFull = ids.length >= MOST_RUNS;
  return (
    <div className={styles.view}>
      <div className={styles.head}>
        <h1>Compare {counted(ids.length, "run")}</h1>
        <Button
          disabled={isFull}
          title={isFull ? `At most ${MOST_RUNS} runs are compared` : undefined}
          onClick={() => setPicking(true)}
        >
          Add a run
        </Button>
      </div>
      {problem ? <ProblemNote problem={problem} /> : null}
      <Differences comparison={comparison} runs={runs} onJobs={onJobs} />
      <ComparedCharts runs={runs} />
      <ComparedSamples runs={runs} />
      <Outcomes runs={runs} />
      <Dialog open={isPicking} onClose={() => setPicking(false)} title="Add a run" wide>
        <RunPicker
          without={ids}
          onPick={(id) => {
            setPicking(false);
            onJobs([...ids, id]);
          }}
        />
      </Dialog>
    </div>
  );
}

const OVER = new Set(["COMPLETED", "INCOMPLETE", "CANCELLED", "FAILED", "FAILED_PROVISIONING"]);

function isOver(job: Comparison["jobs"][number]): boolean {
  return OVER.has(job.shown);
}
