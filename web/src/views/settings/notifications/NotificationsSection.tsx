import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { Delivery, Session } from "~/api/documents";
import { Button } from "~/design/Button";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import { duration } from "~/text/format";
import styles from "../Parts.module.css";

/** Tries the channels: to oneself, and to the operators for those who manage. */
export function NotificationsSection({ session }: { readonly session: Session }) {
  const [text, setText] = useState("A test from Stationmaster's page.");
  const toMe = useMutation({
    mutationFn: () =>
      answer(api.POST("/api/users/{user}/inbox/test", { params: { path: { user: "me" } }, body: { text } })),
  });
  const toOperators = useMutation({
    mutationFn: () => answer(api.POST("/api/inbox/test-operators", { body: { text } })),
  });
  return (
    <>
      <h2>Notifications</h2>
      <p className="quiet">Send a message by every channel and see which of them works.</p>
      <Field label="Message">
        {(control) => (
          <input {...control} value={text} maxLength={500} onChange={(event) => setText(event.target.value)} />
        )}
      </Field>
      <div className={styles.buttons}>
        <Button kind="main" busy={toMe.isPending} disabled={!text.trim()} onClick={() => toMe.mutate()}>
          Send it to me
        </Button>
        {session.rights.includes("manage") ? (
          <Button busy={toOperators.isPending} disabled={!text.trim()} onClick={() => toOperators.mutate()}>
            Send it to the operators
          </Button>
        ) : null}
      </div>
      <Results title="To you" sent={toMe.data?.items} problem={toMe.error} />
      <Results title="To the operators" sent={toOperators.data?.items} problem={toOperators.error} />
    </>
  );
}

interface ResultsProps {
  readonly title: string;
  readonly sent: readonly Delivery[] | undefined;
  readonly problem: unknown;
}

function Results({ title, sent, problem }: ResultsProps) {
  if (problem) return <ProblemNote problem={problem} />;
  return (
    <div role="status">
      {sent ? (
        <>
          <h3>{title}</h3>
          <ul className={styles.results}>
            {sent.map((each) => (
              <li key={each.channel} className={styles.result}>
                <span>{each.channel}</span>
                {each.success ? (
                  <span className={styles.good}>✓ delivered</span>
                ) : (
                  <span className={styles.bad}>
                    ✕ {each.problem ?? "not delivered"}
                    {each.retry_in === null ? "" : ` (it can be tried again in ${duration(each.retry_in)})`}
                  </span>
                )}
              </li>
            ))}
          </ul>
          {sent.length === 0 ? <p className="quiet">No channel is set up.</p> : null}
        </>
      ) : null}
    </div>
  );
}
