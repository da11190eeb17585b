/** How a training ended or what holds it up, what was saved, and what happens next. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Job, JobEvent } from "~/api/documents";
import { When } from "~/design/When";
import { count, counted } from "~/text/format";
import { settingValue } from "~/text/values";
import styles from "./JobHeader.module.css";

interface Props {
  readonly job: Job;
  readonly events: readonly JobEvent[];
}

export function Outcome({ job, events }: Props) {
  return (
    <>
      <State job={job} events={events} />
      <Lineage job={job} />
    </>
  );
}

function State({ job, events }: Props) {
  const parked = job.alerts.find(({ kind }) => kind === "parked");
  if (job.parked) {
    return (
      <Note tone="attention" title="Its machine is stopped, with the model on its disk">
        <p>
          {job.parked.why}. It is stopped since <When at={job.parked.at} />, so that only its disk costs.
        </p>
        <p>
          “Stop and keep” starts it once more and fetches the model; “Cancel” gives the model up. Without either the
          machine is destroyed with the model after a while: {parked?.message ?? "see the alerts"}.
        </p>
      </Note>
    );
  }
  if (job.shown === "NEEDS_RECOVERY") {
    const last = events.findLast(({ kind }) => kind === "unreachable");
    return (
      <Note tone="attention" title="Out of reach">
        <p>{last?.sentence ?? "The machine, or the worker that looks after it, does not answer."}</p>
        <p>
          The training may still be running. Stationmaster keeps asking and goes on where it was; if the machine is
          gone, another one is rented. {saved(job)}
        </p>
      </Note>
    );
  }
  if (job.outcome === null) return <Again job={job} events={events} />;
  if (job.outcome === "COMPLETED") return null;
  return (
    <Note
      tone={job.outcome === "FAILED" || job.outcome === "FAILED_PROVISIONING" ? "bad" : "attention"}
      title={ended(job)}
    >
      {job.explanation ? <pre>{job.explanation}</pre> : null}
      <p>
        {saved(job)} {NEXT[job.outcome] ?? ""}
      </p>
    </Note>
  );
}

const NEXT: Record<string, string> = {
  FAILED: "“Train again” proposes the same training with what can be corrected.",
  FAILED_PROVISIONING: "No machine was paid for. “Train again” looks for one at today's prices.",
  INCOMPLETE: "“Train again” can continue from there.",
};

function ended(job: Job): string {
  return job.meaning ?? (job.reason ?? job.outcome ?? "").toLowerCase().replaceAll("_", " ");
}

function saved(job: Job): string {
  const kept = job.checkpoints.filter(({ kind, verified_at }) => kind !== "sample" && verified_at !== null);
  const steps = kept.flatMap(({ step }) => (step === null || step === undefined ? [] : [step]));
  if (kept.length === 0) return "No checkpoint was saved.";
  const furthest = steps.length > 0 ? `, the furthest of step ${count(Math.max(...steps))}` : "";
  return `Saved: ${counted(kept.length, "checkpoint")}${furthest}.`;
}

/** A further attempt after one that was lost. */
function Again({ job, events }: Props) {
  const failed = events.findLast(({ kind }) => kind === "attempt_failed");
  if (!failed || job.attempt < 2) return null;
  const resumed = events.findLast(({ kind, version }) => kind === "resumed" && version > failed.version);
  return (
    <Note tone="attention" title={`Attempt ${job.attempt}`}>
      <p>{failed.sentence}</p>
      <p>{resumed?.sentence ?? saved(job)}</p>
    </Note>
  );
}

function Note(props: { readonly tone: "bad" | "attention"; readonly title: string; readonly children: ReactNode }) {
  return (
    <section className={`${styles.outcome} ${styles[props.tone]}`}>
      <h2>
        <span aria-hidden>{props.tone === "bad" ? "✕" : "▲"}</span> {props.title}
      </h2>
      {props.children}
    </section>
  );
}

/** What it repeats, and what was changed after the analysis of that. */
function Lineage({ job }: { readonly job: Job }) {
  if (!job.retry_of) return null;
  const isChanged = job.applied.length > 0;
  return (
    <div className={styles.lineage}>
      <p>
        Repeats{" "}
        <Link to="/jobs/$job" params={{ job: job.retry_of }}>
          {job.retry_of}
        </Link>
        {isChanged ? "" : "."}
      </p>
      {isChanged ? <Applied job={job} /> : null}
    </div>
  );
}

function Applied({ job }: { readonly job: Job }) {
  return (
    <details>
      <summary>with {counted(job.applied.length, "recommendation")} applied</summary>
      <ul>
        {job.applied.map((one) => (
          <li key={one.number}>
            {one.title}: {one.what} {settingValue(one.before)} → {settingValue(one.after)}
            {one.note ? `, ${one.note}` : ""}
          </li>
        ))}
      </ul>
    </details>
  );
}
