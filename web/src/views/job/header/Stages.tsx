import type { Job, JobEvent } from "~/api/documents";
import styles from "./Stages.module.css";
import { reachedStage, STAGES } from "./stages";

/** The ten stages in a row. On a narrow screen only the present one has its name beside the row. */
export function Stages({ job, events }: { readonly job: Job; readonly events: readonly JobEvent[] }) {
  const { at, is } = reachedStage(job, events);
  const stateOf = (place: number) => (place < at || is === "done" ? "done" : place > at ? "ahead" : is);
  return (
    <div className={styles.stages}>
      <ol className={styles.row} aria-label="Stages">
        {STAGES.map(([name, word], place) => {
          const state = stateOf(place);
          return (
            <li
              key={name}
              className={`${styles.stage} ${styles[state.replaceAll(" ", "-")]}`}
              aria-current={state === "going on" ? "step" : undefined}
            >
              <span className={styles.bar} />
              <span className={styles.name}>
                <span aria-hidden className={styles.mark}>
                  {MARKS[state]}
                </span>
                {word}
                <span className="visually-hidden">, {state === "ahead" ? "not yet" : state}</span>
              </span>
            </li>
          );
        })}
      </ol>
      <p className={styles.present} aria-hidden>
        Stage {at + 1} of {STAGES.length}: {STAGES[at]?.[1]}
        {is === "ended early" ? ", ended here" : ""}
      </p>
    </div>
  );
}

const MARKS = { done: "✓", ahead: "", "going on": "●", "ended early": "✕" } as const;
