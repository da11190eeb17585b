import { useQuery } from "@tanstack/react-query";
import type { Job, PaidLine } from "~/api/documents";
import { jobCostsQuery } from "~/api/queries";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Table } from "~/design/Table";
import { useNow, When } from "~/design/When";
import { dollars, dollarsPerHour, duration } from "~/text/format";
import { CostBar } from "./CostBar";
import { partsOf, totalOf } from "./costs";
import { hasTimeLimit } from "./limits";
import styles from "./Tab.module.css";

/** What the training cost: for what, against what was quoted, and machine by machine. */
export function CostTab({ job }: { readonly job: Job }) {
  const { data: lines, error, refetch } = useQuery(jobCostsQuery(job.id));
  if (error && !lines) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!lines) return <Loading what="the costs" height={240} />;
  return (
    <div className={styles.tab}>
      {lines.length === 0 ? (
        <Empty title="No costs yet">
          <p>Costs begin when a machine is rented.</p>
        </Empty>
      ) : (
        <CostBar parts={partsOf(lines)} />
      )}
      <Agreed job={job} lines={lines} />
      {lines.length === 0 ? null : <Lines lines={lines} />}
    </div>
  );
}

function Agreed({ job, lines }: { readonly job: Job; readonly lines: readonly PaidLine[] }) {
  const { cost_usd: quoted, hours } = job.quote;
  const total = totalOf(lines);
  const apart = total - quoted.expected;
  return (
    <section className={styles.section}>
      <h3>What was agreed</h3>
      <dl className={styles.facts}>
        <dt>Cost {job.state === "ENDED" ? "in all" : "so far"}</dt>
        <dd>
          {dollars(total)}
          {job.state === "ENDED" && total > 0 ? (
            <span className="quiet">
              {" "}
              {dollars(Math.abs(apart))} {apart > 0 ? "more" : "less"} than expected
            </span>
          ) : null}
        </dd>
        <dt>Quoted</dt>
        <dd>
          {dollars(quoted.expected)}, between {dollars(quoted.low)} and {dollars(quoted.high)}
        </dd>
        <dt>Time</dt>
        <dd>
          {duration(job.used.rented_hours * 3600)} rented, {duration(hours.expected * 3600)} expected
        </dd>
        <dt>Limit</dt>
        <dd>
          {hasTimeLimit(job)
            ? `${dollars(job.limits.max_spend_usd)} or ${duration(job.limits.max_hours * 3600)}: the training is stopped there, and its best checkpoint is kept`
            : "none"}
        </dd>
      </dl>
    </section>
  );
}

function Lines({ lines }: { readonly lines: readonly PaidLine[] }) {
  const now = useNow();
  return (
    <section className={styles.section}>
      <h3>Machines</h3>
      <Table label="What each machine cost">
        <thead>
          <tr>
            <th scope="col">Machine</th>
            <th scope="col">For</th>
            <th scope="col">Since</th>
            <th scope="col" className={styles.number}>
              Time
            </th>
            <th scope="col" className={styles.number}>
              Price
            </th>
            <th scope="col" className={styles.number}>
              Cost
            </th>
            <th scope="col">How sure</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={`${line.rental} ${line.kind} ${line.started_at}`}>
              <td className="mono">{line.rental}</td>
              <td>{line.kind}</td>
              <td>
                <When at={line.started_at} />
              </td>
              <td className={styles.number}>
                {duration(((line.ended_at ? Date.parse(line.ended_at) : now) - Date.parse(line.started_at)) / 1000)}
              </td>
              <td className={styles.number}>{dollarsPerHour(line.rate_per_hour_micros / 1e6)}</td>
              <td className={styles.number}>{dollars(line.amount_micros / 1e6)}</td>
              <td>
                {line.ended_at === null
                  ? "● still runs"
                  : line.source === "provider"
                    ? "as billed"
                    : "by price and time"}
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </section>
  );
}
