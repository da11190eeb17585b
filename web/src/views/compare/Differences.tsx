import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ComparedJob, Comparison } from "~/api/documents";
import { jobQuery } from "~/api/queries";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { counted, UNKNOWN } from "~/text/format";
import { settingValue } from "~/text/values";
import styles from "./Compare.module.css";
import type { Run } from "./comparedJobs";
import { RunColumns, RunRow } from "./RunColumns";

interface Props {
  readonly comparison: Comparison;
  readonly runs: readonly Run[];
  readonly onJobs: (jobs: readonly string[]) => void;
}

/** What a job is besides its parameters. */
const ABOUT: readonly { readonly name: string; readonly of: (job: ComparedJob) => string }[] = [
  { name: "Recipe", of: (job) => job.recipe },
  { name: "Dataset", of: (job) => `${job.dataset}, ${counted(job.images, "image")}` },
  { name: "Trigger", of: (job) => job.trigger ?? UNKNOWN },
  { name: "GPU", of: (job) => job.gpu ?? UNKNOWN },
  { name: "Provider", of: (job) => job.provider },
];

/** Only what is not the same everywhere; the rest is folded. */
export function Differences({ comparison, runs, onJobs }: Props) {
  const { jobs, differences } = comparison;
  const isSame = (of: (job: ComparedJob) => string) => new Set(jobs.map(of)).size === 1;
  // Two datasets may have the same name.
  const differing = ABOUT.filter(({ name, of }) => !isSame(of) || (name === "Dataset" && !isSame(hashOf)));
  const equal = ABOUT.filter((one) => !differing.includes(one));
  return (
    <section className={styles.section} aria-labelledby="differences">
      <h2 id="differences">What differs</h2>
      <RunColumns label="What differs" runs={runs} onJobs={onJobs}>
        {differing.map(({ name, of }) => (
          <RunRow key={name} name={name} values={jobs.map(of)} />
        ))}
        {differences.map(({ parameter, values }) => (
          <RunRow key={parameter} name={<code>{parameter}</code>} values={values.map(settingValue)} />
        ))}
        {differing.length + differences.length === 0 ? (
          <tr>
            <th scope="row" className="quiet">
              Settings
            </th>
            <td colSpan={runs.length}>All of them are the same.</td>
          </tr>
        ) : null}
      </RunColumns>
      <Same comparison={comparison} equal={equal} />
    </section>
  );
}

interface SameProps {
  readonly comparison: Comparison;
  readonly equal: typeof ABOUT;
}

function Same({ comparison, equal }: SameProps) {
  const [isOpen, setOpen] = useState(false);
  const [first] = comparison.jobs;
  const number = comparison.same_parameters + equal.length;
  if (!first || number === 0) return null;
  return (
    <details className={styles.same} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{counted(number, "setting is", "settings are")} the same</summary>
      {isOpen ? <SameValues comparison={comparison} equal={equal} job={first} /> : null}
    </details>
  );
}

function SameValues({ comparison, equal, job }: SameProps & { readonly job: ComparedJob }) {
  const { data, error } = useQuery(jobQuery(job.id));
  if (error && !data) return <ProblemNote problem={error} />;
  if (!data) return <Loading what="the values" height={96} />;
  const differing = new Set(comparison.differences.map((one) => one.parameter));
  const parameters = Object.entries(data.parameters).filter(([name]) => !differing.has(name));
  return (
    <dl className={styles.values}>
      {equal.map(({ name, of }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{of(job)}</dd>
        </div>
      ))}
      {parameters.map(([name, value]) => (
        <div key={name}>
          <dt>
            <code>{name}</code>
          </dt>
          <dd>{settingValue(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function hashOf(job: ComparedJob): string {
  return job.dataset_sha256;
}
