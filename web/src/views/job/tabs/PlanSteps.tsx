import type { JobPlan } from "~/api/documents";
import { useNow } from "~/design/When";
import { count, duration } from "~/text/format";
import styles from "./PlanSteps.module.css";

type Step = JobPlan["steps"][number];

const MARKS: Record<string, { readonly mark: string; readonly word: string }> = {
  running: { mark: "●", word: "running" },
  done: { mark: "✓", word: "done" },
  failed: { mark: "✕", word: "failed" },
  stopped: { mark: "◧", word: "stopped" },
};

/** The commands in their order, with what became of each. */
export function PlanSteps({ steps }: { readonly steps: readonly Step[] }) {
  const now = useNow();
  return (
    <ol className={styles.steps}>
      {steps.map((step) => {
        const look = MARKS[step.state ?? ""] ?? { mark: "○", word: "not begun" };
        return (
          <li key={step.name}>
            <p>
              <span aria-hidden>{look.mark}</span> <strong>{step.name}</strong> {look.word}
              <span className="quiet">{detailsOf(step, now)}</span>
            </p>
            <pre className={styles.command}>{step.argv.join(" ")}</pre>
            {step.environment.length + step.secrets.length > 0 ? (
              <p className="quiet">
                {step.environment.length > 0 ? `Variables: ${step.environment.join(", ")}. ` : ""}
                {step.secrets.length > 0 ? `Secrets, by name only: ${step.secrets.join(", ")}.` : ""}
              </p>
            ) : null}
          </li>
        );
      })}
    </ol>
  );
}

function detailsOf(step: Step, now: number): string {
  const parts = [
    step.exit_code === null || step.exit_code === undefined ? null : `exit code ${step.exit_code}`,
    step.tried ? `try ${count(step.tried)} of ${count(step.tries)}` : null,
    step.started_at
      ? duration(((step.ended_at ? Date.parse(step.ended_at) : now) - Date.parse(step.started_at)) / 1000)
      : null,
    `at most ${duration(step.timeout_seconds)}`,
    step.contained ? "in the container" : null,
    step.optional ? "may fail" : null,
  ].filter((part) => part !== null);
  return ` · ${parts.join(" · ")}`;
}
