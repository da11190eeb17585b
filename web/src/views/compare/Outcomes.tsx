import { useQueries } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { ComparedJob } from "~/api/documents";
import { Badge, StateMark } from "~/design/StateMark";
import { count, dollars, duration, figure, finite, peakOf, speed, UNKNOWN } from "~/text/format";
import { healthLook } from "~/text/health";
import styles from "./Compare.module.css";
import type { Run } from "./comparedJobs";
import { runSummaryQuery } from "./queries";
import { RunColumns, RunRow } from "./RunColumns";

interface Row {
  readonly name: string;
  readonly of: (job: ComparedJob) => ReactNode;
  /** A figure of which the lowest is marked as the best. */
  readonly rank?: (job: ComparedJob) => number | null;
}

const ROWS: readonly Row[] = [
  { name: "Outcome", of: (job) => <StateMark shown={job.shown} /> },
  { name: "Health", of: (job) => <Health health={job.health} /> },
  { name: "Steps", of: (job) => `${count(job.step)} of ${count(job.total_steps)}` },
  { name: "First loss", of: (job) => figure(job.first_loss) },
  { name: "Last loss", of: (job) => figure(job.last_loss) },
  { name: "Speed", of: (job) => speed(job.steps_per_second) },
  { name: "Peak GPU memory", of: (job) => peakOf(job.peak_gpu_gib, job.gpu_gib) },
  { name: "Time on machines", of: hours, rank: (job) => (job.hours > 0 ? job.hours : null) },
  { name: "Cost", of: cost, rank: (job) => (job.cost_usd > 0 ? job.cost_usd : null) },
];

/** What came of each run, and what it took. */
export function Outcomes({ runs }: { readonly runs: readonly Run[] }) {
  const lowest = useQueries({ queries: runs.map((run) => runSummaryQuery(run.job.id)) }).map(({ data }) =>
    finite(data?.series.find((series) => series.name === "loss")?.lowest),
  );
  const jobs = runs.map((run) => run.job);
  return (
    <section className={styles.section} aria-labelledby="outcomes">
      <h2 id="outcomes">Outcome, time and cost</h2>
      <RunColumns label="Outcome, time and cost" runs={runs}>
        {ROWS.slice(0, 5).map((row) => (
          <Ranked key={row.name} row={row} jobs={jobs} />
        ))}
        <RunRow name="Best loss" values={marked(lowest, lowest.map(figure))} />
        {ROWS.slice(5).map((row) => (
          <Ranked key={row.name} row={row} jobs={jobs} />
        ))}
      </RunColumns>
    </section>
  );
}

function Ranked({ row, jobs }: { readonly row: Row; readonly jobs: readonly ComparedJob[] }) {
  const values = jobs.map(row.of);
  const rank = row.rank;
  return <RunRow name={row.name} values={rank ? marked(jobs.map(rank), values) : values} />;
}

/** The values, the lowest with a word: colour or weight alone would not tell. */
function marked(figures: readonly (number | null)[], values: readonly ReactNode[]): readonly ReactNode[] {
  const known = figures.filter((one) => one !== null);
  const lowest = Math.min(...known);
  if (known.length < 2 || known.every((one) => one === lowest)) return values;
  return values.map((value, place) =>
    figures[place] === lowest ? (
      <>
        {value} <span className={styles.lowest}>lowest</span>
      </>
    ) : (
      value
    ),
  );
}

function Health({ health }: { readonly health: string | null }) {
  const look = healthLook(health);
  return (
    <Badge tone={look.tone}>
      <span aria-hidden>{look.mark}</span> {look.word}
    </Badge>
  );
}

function hours(job: ComparedJob): ReactNode {
  return (
    <>
      {job.hours > 0 ? duration(job.hours * 3600) : UNKNOWN}{" "}
      <span className="quiet">(estimate {duration(job.quoted_hours * 3600)})</span>
    </>
  );
}

function cost(job: ComparedJob): ReactNode {
  return (
    <>
      {dollars(job.cost_usd)} <span className="quiet">(estimate {dollars(job.quoted_cost_usd)})</span>
    </>
  );
}
