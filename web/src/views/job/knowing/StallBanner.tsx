import { useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import type { Job } from "~/api/documents";
import { sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { useNow } from "~/design/When";
import { clock, count, duration, exactly } from "~/text/format";
import { Questions } from "../header/Questions";
import { numbersOf, type Stall } from "./stall";
import styles from "./WhatToKnow.module.css";

/** A stall: since when, by what numbers, when it is stopped, what is kept, and the way to stop it now. */
export function StallBanner({ job, stall }: { readonly job: Job; readonly stall: Stall }) {
  const now = useNow();
  const { data: session } = useQuery(sessionQuery);
  const [isAsking, setAsking] = useState(false);
  const { stopsAt } = stall;
  const left = stopsAt === null ? null : Math.max(0, (stopsAt - now) / 1000);
  return (
    <section className={styles.stall} role="alert" aria-label="Stalled">
      <h2>
        <span aria-hidden>▲</span> Stalled since {clock(stall.since, now)}
      </h2>
      <p>{stall.reason}</p>
      <p title={stopsAt === null ? undefined : exactly(stopsAt)}>
        {stopsAt === null || left === null
          ? "It keeps running: stopping on stalls is off."
          : left > 0
            ? `It is stopped in ${duration(left)} (${clock(stopsAt, now)}) unless it goes on.`
            : "It is being stopped."}{" "}
        {stall.checkpointStep === null
          ? "There is no checkpoint to keep yet."
          : `The checkpoint of step ${count(stall.checkpointStep)} is kept.`}
      </p>
      <dl className={styles.numbers}>
        {numbersOf(stall).map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
      {session?.rights.includes("train") && job.desired === "RUN" ? (
        <Button onClick={() => setAsking(true)}>Stop now…</Button>
      ) : null}
      <Questions job={job} question={isAsking ? "stop" : null} onClose={() => setAsking(false)} />
    </section>
  );
}
