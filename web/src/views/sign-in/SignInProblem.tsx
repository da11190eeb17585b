import { asProblem, Problem } from "~/api/problem";
import { ProblemNote } from "~/design/ProblemNote";
import { duration } from "~/text/format";

interface Props {
  readonly problem: unknown;
  /** Seconds until the server listens again. */
  readonly wait: number;
  readonly wasLink: boolean;
}

/** Why signing in failed, and what to do about it. */
export function SignInProblem({ problem, wait, wasLink }: Props) {
  const found = asProblem(problem);
  if (found.status === 429) {
    const hint = wait > 0 ? `You can try again in ${duration(wait)}.` : "You can try again now.";
    return <ProblemNote problem={new Problem("Too many failed sign-ins from this address.", 429, hint)} />;
  }
  if (found.status === 401 && wasLink) {
    const hint = "A link works once and only for a few minutes. Ask for another one, or sign in with a token.";
    return <ProblemNote problem={new Problem("This link was used already, or has expired.", 401, hint)} />;
  }
  if (found.status === 401) {
    const hint = "Copy it again as a whole, or ask the operator for another one.";
    return <ProblemNote problem={new Problem("This token is unknown, has expired or was revoked.", 401, hint)} />;
  }
  return <ProblemNote problem={found} />;
}
