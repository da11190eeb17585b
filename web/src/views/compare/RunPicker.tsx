import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Job } from "~/api/documents";
import { jobsQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import { StateMark } from "~/design/StateMark";
import { When } from "~/design/When";
import { counted, dollars, figure } from "~/text/format";
import styles from "./Compare.module.css";
import { MOST_RUNS } from "./comparedJobs";

type Props =
  | { readonly without: readonly string[]; readonly several?: false; readonly onPick: (id: string) => void }
  | {
      readonly without: readonly string[];
      readonly several: true;
      readonly onPickSeveral: (ids: readonly string[]) => void;
    };

const SHOWN = 50;

/** Recent jobs with a search by name, recipe or id; one is taken at once, several behind a button. */
export function RunPicker(props: Props) {
  const [text, setText] = useState("");
  const [picked, setPicked] = useState<readonly string[]>([]);
  const { data, error, refetch } = useQuery({ ...jobsQuery({ ended: true, limit: 500 }), refetchInterval: false });
  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading what="recent trainings" height={240} />;
  const others = data.items.filter((job) => !isNamed(job, props.without));
  const found = others.filter((job) => matches(job, text)).slice(0, SHOWN);
  const toggle = (id: string) =>
    setPicked((before) => (before.includes(id) ? before.filter((one) => one !== id) : [...before, id]));
  return (
    <div className={styles.picker}>
      <Field label="Find a training">
        {(control) => (
          <input
            {...control}
            type="search"
            placeholder="Name, recipe or id"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      {found.length === 0 ? (
        <p className="quiet">
          {others.length === 0 ? "There is no other training yet." : `No training matches “${text}”.`}
        </p>
      ) : (
        <ul className={`${styles.recent} ${props.several ? styles.several : ""}`} aria-label="Recent trainings">
          {found.map((job) => (
            <li key={job.id}>
              {props.several ? (
                <label className={styles.candidate}>
                  <input
                    type="checkbox"
                    checked={picked.includes(job.id)}
                    disabled={!picked.includes(job.id) && picked.length >= MOST_RUNS}
                    onChange={() => toggle(job.id)}
                  />
                  <Candidate job={job} />
                </label>
              ) : (
                <button type="button" className={styles.candidate} onClick={() => props.onPick(job.id)}>
                  <Candidate job={job} />
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {props.several ? (
        <div className={styles.pick}>
          <Button kind="main" disabled={picked.length < 2} onClick={() => props.onPickSeveral(picked)}>
            {picked.length < 2 ? "Compare" : `Compare ${counted(picked.length, "run")}`}
          </Button>
          <span className="quiet">{picked.length < 2 ? "Choose at least two." : ""}</span>
        </div>
      ) : null}
    </div>
  );
}

function Candidate({ job }: { readonly job: Job }) {
  return (
    <>
      <span className={styles.candidateName}>
        {job.name} <code>{job.id}</code>
      </span>
      <StateMark shown={job.shown} />
      <span className="quiet">{job.recipe}</span>
      <span className="quiet">loss {figure(job.progress.loss)}</span>
      <span className="quiet">{dollars(job.cost_usd)}</span>
      <span className="quiet">
        <When at={job.created_at} />
      </span>
    </>
  );
}

function isNamed(job: Job, names: readonly string[]): boolean {
  return names.includes(job.id) || names.includes(job.name);
}

function matches(job: Job, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  return `${job.name} ${job.recipe} ${job.id} ${job.owner ?? ""} ${job.shown}`.toLowerCase().includes(wanted);
}
