import type { ErrorComponentProps } from "@tanstack/react-router";
import { ProblemNote } from "~/design/ProblemNote";

/** A view that could not be shown; the rest of the page stays. */
export function ViewProblem({ error, reset }: ErrorComponentProps) {
  return <ProblemNote problem={error} onRetry={reset} />;
}
