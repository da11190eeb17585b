import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Analysis, Job } from "~/api/documents";
import { Button } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { count, counted } from "~/text/format";
import styles from "./ApplyDialog.module.css";
import { applyParameter, choicesOf, usuallyChosen } from "./choices";
import { NewJobDifferences } from "./NewJobDifferences";
import { followingQuery } from "./queries";
import { RecommendationChoices } from "./RecommendationChoices";

interface Props {
  readonly job: Job;
  readonly analysis: Analysis;
  readonly onClose: () => void;
}

/** Choose what the next job follows, see how it differs, and go on to its form. Nothing is stored or rented here. */
export function ApplyDialog({ job, analysis, onClose }: Props) {
  const [given, setGiven] = useState<ReadonlySet<number> | null>(null);
  const [resume, setResume] = useState(false);
  const navigate = useNavigate();

  const all = analysis.recommendations.map((_, place) => place + 1);
  const possible = useQuery(followingQuery(job.id, all, false));
  const choices = possible.data ? choicesOf(analysis.recommendations, possible.data) : [];
  const chosen = given ?? usuallyChosen(choices);
  const numbers = choices.filter((choice) => choice.isPossible && chosen.has(choice.number)).map((one) => one.number);
  const terms = useQuery({ ...followingQuery(job.id, numbers, resume), placeholderData: keepPreviousData });

  if (possible.error) {
    return (
      <>
        <ProblemNote problem={possible.error} onRetry={() => void possible.refetch()} />
        <div className={styles.buttons}>
          <Button onClick={onClose}>Leave it</Button>
        </div>
      </>
    );
  }
  if (!possible.data) return <Loading what="what can be applied" height={240} />;
  const differences = numbers.length > 0 ? terms.data : undefined;
  const go = () =>
    navigate({
      to: "/new",
      search: { retry: job.id, apply: applyParameter(choices, numbers), ...(resume ? { resume: 1 } : {}) } as never,
    });
  return (
    <div className={styles.dialog}>
      <RecommendationChoices
        choices={choices}
        chosen={chosen}
        onChange={(number, isChosen) => {
          const next = new Set(chosen);
          if (isChosen) next.add(number);
          else next.delete(number);
          setGiven(next);
        }}
      />
      {job.model_step === null ? null : (
        <label className={styles.resume}>
          <input type="checkbox" checked={resume} onChange={(event) => setResume(event.target.checked)} />
          Continue from the checkpoint of step {count(job.model_step)} instead of starting anew
        </label>
      )}
      <section aria-labelledby="differences" aria-live="polite">
        <h3 id="differences">The new job, compared with {job.name}</h3>
        {terms.error && numbers.length > 0 ? (
          <ProblemNote problem={terms.error} />
        ) : numbers.length === 0 ? (
          <p className="quiet">Nothing is chosen, so nothing would change.</p>
        ) : differences ? (
          <NewJobDifferences job={job} terms={differences} isOld={terms.isFetching} />
        ) : (
          <Loading what="the differences" height={96} />
        )}
      </section>
      <div className={styles.buttons}>
        <Button onClick={onClose}>Leave it</Button>
        <Button kind="main" disabled={numbers.length === 0 || terms.isError} onClick={() => void go()}>
          Open the form with {counted(numbers.length, "change")}
        </Button>
      </div>
    </div>
  );
}
