import { asProblem } from "~/api/problem";
import { Button } from "~/design/Button";
import styles from "./ProblemNote.module.css";

interface Props {
  readonly problem: unknown;
  readonly onRetry?: () => void;
}

/** What went wrong in one line, what to do about it in a second. */
export function ProblemNote({ problem, onRetry }: Props) {
  const { message, hint } = asProblem(problem);
  return (
    <div className={styles.note} role="alert">
      <span aria-hidden className={styles.mark}>
        ✕
      </span>
      <div>
        <p>{message}</p>
        {hint ? <p className="quiet">{hint}</p> : null}
      </div>
      {onRetry ? <Button onClick={onRetry}>Try again</Button> : null}
    </div>
  );
}
