import type { Job, JobEvent } from "~/api/documents";
import { Progress } from "~/design/Progress";
import { StateMark } from "~/design/StateMark";
import { useNow, When } from "~/design/When";
import { useTitle } from "~/frame/title";
import { clock, count, dollars, duration, exactly, finite, percent } from "~/text/format";
import { shownOr } from "~/text/states";
import { Actions } from "./Actions";
import styles from "./JobHeader.module.css";
import { MachineLine } from "./MachineLine";
import { Outcome } from "./Outcome";
import { Stages } from "./Stages";

interface Props {
  readonly job: Job;
  readonly events: readonly JobEvent[];
}

const ENDING: Record<string, string> = {
  STOP: "Stopping, the best checkpoint is kept…",
  CANCEL: "Cancelling…",
  CANCEL_KEEP: "Cancelling, the best checkpoint is fetched first…",
};

/** What the training is, how far it is, when it is ready, what it costs, and what can be done. */
export function JobHeader({ job, events }: Props) {
  const isGoing = job.outcome === null;
  useTitle(job.name); // the frame puts the percentage in front
  return (
    <header className={styles.header}>
      <div className={styles.first}>
        <h1 className={styles.name}>{job.name}</h1>
        <span className={styles.state} role="status">
          <StateMark
            shown={shownOr(
              job.shown,
              job.alerts.some(({ kind }) => kind === "stall"),
            )}
          />
          {isGoing && ENDING[job.desired] ? <span className={styles.ending}>{ENDING[job.desired]}</span> : null}
        </span>
        <Actions job={job} />
      </div>
      <Figures job={job} isGoing={isGoing} isStalled={isGoing && job.alerts.some(({ kind }) => kind === "stall")} />
      <Stages job={job} events={events} />
      <MachineLine job={job} events={events} />
      <Outcome job={job} events={events} />
    </header>
  );
}

interface FiguresProps {
  readonly job: Job;
  readonly isGoing: boolean;
  readonly isStalled: boolean;
}

function Figures({ job, isGoing, isStalled }: FiguresProps) {
  const now = useNow();
  const { step, total_steps: total, percent: done } = job.progress;
  const eta = isGoing && !isStalled && job.state === "EXECUTING" ? finite(job.progress.eta_seconds) : null;
  const ready = eta === null ? null : now + eta * 1000;
  const { low, high, expected } = job.quote.cost_usd;
  return (
    <dl className={styles.figures}>
      <div className={styles.main}>
        <dt className="visually-hidden">Progress</dt>
        <dd>
          <span className={styles.number}>{percent(done)}</span>
          <span className={styles.bar}>
            <Progress percent={done} label="Progress of the training" bare />
          </span>
        </dd>
      </div>
      <div>
        <dt>Step</dt>
        <dd>
          {count(step)} / {count(total)}
        </dd>
      </div>
      {isGoing ? (
        <div>
          <dt>Ready</dt>
          <dd title={ready === null ? undefined : exactly(ready)}>
            {eta === null || ready === null ? duration(null) : `in ${duration(eta)} (${clock(ready, now)})`}
          </dd>
        </div>
      ) : (
        <div>
          <dt>Ended</dt>
          <dd>
            <When at={job.ended_at} />
          </dd>
        </div>
      )}
      <div>
        <dt>Cost</dt>
        <dd title={`quoted ${dollars(low)} to ${dollars(high)}`}>
          <strong>{dollars(job.cost_usd)}</strong>{" "}
          <span className="quiet">
            of about {dollars(expected)}, limit {dollars(job.limits.max_spend_usd)}
          </span>
        </dd>
      </div>
    </dl>
  );
}
