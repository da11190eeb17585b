/** What the charts mean, in words: the first thing that is read aloud. */
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { Job, JobEvent, Reading } from "~/api/documents";
import { Badge } from "~/design/StateMark";
import tones from "~/design/Tone.module.css";
import { useNow } from "~/design/When";
import { healthLook } from "~/text/health";
import type { Tone } from "~/text/states";
import { ABOUT } from "../search";
import { factsOf } from "./facts";
import { StallBanner } from "./StallBanner";
import { stallOf } from "./stall";
import styles from "./WhatToKnow.module.css";

interface Props {
  readonly job: Job;
  readonly events: readonly JobEvent[];
  readonly readings: readonly Reading[];
}

const MARKS: Record<Tone, string> = { good: "✓", running: "●", waiting: "○", attention: "▲", bad: "✕" };

export function WhatToKnow({ job, events, readings }: Props) {
  const now = useNow();
  const stall = useMemo(() => (job.outcome === null ? stallOf(events) : null), [job.outcome, events]);
  const facts = factsOf(job, events, readings, now);
  const health = job.health ? healthLook(job.health) : null;
  return (
    <aside className={styles.know} aria-labelledby="what-to-know">
      {stall ? <StallBanner job={job} stall={stall} /> : null}
      <section className={styles.panel}>
        <h2 id="what-to-know" className={styles.title}>
          What to know
          {health ? (
            <Badge tone={health.tone}>
              <span aria-hidden>{health.mark}</span> {health.word}
            </Badge>
          ) : null}
        </h2>
        <ul className={styles.facts}>
          {facts.map(({ key, tone, text }) => (
            <li key={key} className={styles.fact}>
              <span aria-hidden className={`${styles.mark} ${tones[tone]}`}>
                {MARKS[tone]}
              </span>
              <span>{text}</span>
            </li>
          ))}
          {facts.length === 0 ? <li className="quiet">Nothing needs you.</li> : null}
        </ul>
        {job.recommendation ? (
          <p className={styles.advice}>
            <span aria-hidden>→</span> {job.recommendation}{" "}
            <Link
              to="."
              search={((old: Record<string, unknown>) => ({ ...old, tab: "analysis" })) as never}
              hash={ABOUT}
            >
              See the analysis
            </Link>
          </p>
        ) : null}
        {job.catalogue ? (
          <p>
            Model:{" "}
            <Link to="/models/$model" params={{ model: job.catalogue.slug }}>
              {job.catalogue.slug}
            </Link>
          </p>
        ) : null}
      </section>
    </aside>
  );
}
