import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Job, JobPlan } from "~/api/documents";
import { planQuery } from "~/api/queries";
import { CopyText } from "~/design/CopyText";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Table } from "~/design/Table";
import { bytes, count, counted, dollars, dollarsPerHour, duration, UNKNOWN } from "~/text/format";
import { settingValue } from "~/text/values";
import { hasTimeLimit } from "./limits";
import { PlanSteps } from "./PlanSteps";
import styles from "./Tab.module.css";

/** What runs: the commands, every parameter with its value, the dataset, the container and the limits. */
export function PlanTab({ job }: { readonly job: Job }) {
  const { data: plan, error, refetch } = useQuery(planQuery(job.id));
  if (job.adopted) return <Adopted job={job} training={job.adopted} />;
  if (error && !plan) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!plan) return <Loading what="the plan" height={320} />;
  return (
    <div className={styles.tab}>
      <section className={styles.section}>
        <h3>Steps</h3>
        {plan.problem ? <p>{plan.problem}</p> : <PlanSteps steps={plan.steps} />}
      </section>
      <About job={job} plan={plan} />
      <Parameters plan={plan} />
    </div>
  );
}

/** A training that was started by hand: the job has no plan for it, only where to look. */
function Adopted({ job, training }: { readonly job: Job; readonly training: NonNullable<Job["adopted"]> }) {
  const { instance, release } = training;
  return (
    <section className={styles.section}>
      <h3>A training that was started by hand</h3>
      <dl className={styles.facts}>
        <dt>Process</dt>
        <dd>
          {training.pid === null ? "not identified" : `${training.pid} (${training.command})`} on {training.target}
        </dd>
        <dt>Log</dt>
        <dd>{training.log}</dd>
        <dt>Checkpoints</dt>
        <dd>{training.output ?? UNKNOWN}</dd>
        {instance === null ? null : (
          <>
            <dt>Instance</dt>
            <dd>
              {instance}, {release ? "destroyed when the training is over" : "left as it is"}
            </dd>
          </>
        )}
        <dt>Limit</dt>
        <dd>{hasTimeLimit(job) ? duration(job.limits.max_hours * 3600) : "none"}</dd>
        <dt>Not known</dt>
        {training.unknown.map((sentence) => (
          <dd key={sentence}>{sentence}</dd>
        ))}
      </dl>
    </section>
  );
}

function About({ job, plan }: { readonly job: Job; readonly plan: JobPlan }) {
  const { container } = plan;
  const { dataset, limits, machine } = job;
  return (
    <section className={styles.section}>
      <h3>What it uses</h3>
      <dl className={styles.facts}>
        <dt>Recipe</dt>
        <dd>
          <Link to="/recipes/$recipe" params={{ recipe: plan.recipe }} className={styles.link}>
            {plan.recipe}
          </Link>
          , attempt {count(Math.max(plan.attempt, 1))}
        </dd>
        <dt>Dataset</dt>
        <dd>
          {dataset.source}, {counted(dataset.images, "picture or text", "pictures or texts")}, {bytes(dataset.size)},
          SHA-256 <CopyText text={dataset.sha256} what="hash of the dataset" />
        </dd>
        <dt>Trigger word</dt>
        <dd>{job.trigger ?? UNKNOWN}</dd>
        <dt>Container</dt>
        <dd>
          {container === null
            ? "none: the steps run on the machine itself"
            : `${container.image} (${container.engine}), ${bytes(container.shm_bytes)} shared memory${
                container.memory_bytes === null ? "" : `, at most ${bytes(container.memory_bytes)} of memory`
              }`}
        </dd>
        <dt>Machine</dt>
        <dd>{wishes(machine)}</dd>
        <dt>Limits</dt>
        <dd>
          {dollars(limits.max_spend_usd)}, {duration(limits.max_hours * 3600)}
          {limits.max_price_per_hour_usd ? `, ${dollarsPerHour(limits.max_price_per_hour_usd)} at most` : ""}
        </dd>
        {job.resume ? (
          <>
            <dt>Continues from</dt>
            <dd>step {count(job.resume.step)}</dd>
          </>
        ) : null}
      </dl>
    </section>
  );
}

function wishes(machine: Job["machine"]): string {
  const asked = [
    machine.gpus ? counted(machine.gpus, "GPU") : null,
    machine.vram_gib ? `${machine.vram_gib} GB of GPU memory` : null,
    machine.disk_gib ? `${machine.disk_gib} GB of disk` : null,
    machine.memory_gib ? `${machine.memory_gib} GB of memory` : null,
    machine.avoided_machines?.length ? `${counted(machine.avoided_machines.length, "host")} avoided` : null,
  ].filter((one) => one !== null);
  return asked.length > 0 ? asked.join(", ") : "what the recipe needs";
}

function Parameters({ plan }: { readonly plan: JobPlan }) {
  const changed = plan.parameters.filter((one) => one.is_changed).length;
  return (
    <section className={styles.section}>
      <h3>Parameters</h3>
      <p className="quiet">
        {counted(changed, "value differs", "values differ")} from the recipe's defaults, marked with ◆.
      </p>
      <Table label="Parameters">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col">Default</th>
            <th scope="col">Meaning</th>
          </tr>
        </thead>
        <tbody>
          {plan.parameters.map((one) => (
            <tr key={one.name}>
              <th scope="row" className="mono">
                {one.name}
              </th>
              <td className={one.is_changed ? styles.changed : undefined}>
                {settingValue(one.value)}
                {one.is_changed ? <span title="differs from the default"> ◆</span> : null}
              </td>
              <td className="quiet">{settingValue(one.default)}</td>
              <td>{one.help}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </section>
  );
}
