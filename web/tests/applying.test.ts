import { describe, expect, it } from "vitest";
import type { Recommendation, Terms } from "~/api/documents";
import { applyParameter, choicesOf, usuallyChosen } from "~/views/job/analysis/choices";

function advice(lever: string, severity: string): Recommendation {
  return {
    severity,
    lever,
    title: "Change it",
    action: "Do it.",
    impact: "It passes.",
    config_path: `parameters.${lever}`,
    current_value: 2,
    recommended_value: 1,
    rule: "a_rule",
    basis: "",
    confidence: "high",
    evidence: [],
  };
}

const ADVICE = [
  advice("learning_rate", "critical"),
  advice("machine.shm_gb", "critical"),
  advice("batch_size", "info"),
  advice("batch_size", "info"),
];
const applied = (number: number, what: string) => ({
  number,
  what,
  before: 2,
  after: 1,
  severity: "critical",
  title: "",
  config_path: `parameters.${what}`,
});
const skipped = (number: number, why: string) => ({
  number,
  severity: "info",
  title: "",
  config_path: "",
  recommended_value: 1,
  why,
});
const TERMS = {
  applied: [applied(1, "learning_rate"), applied(3, "batch_size")],
  skipped: [skipped(2, "there is no parameter for it"), skipped(4, "recommendation 3 sets batch_size to 1")],
} as unknown as Terms;

describe("what can be applied", () => {
  const choices = choicesOf(ADVICE, TERMS);

  it("is what the server applied, and what only another choice keeps out", () => {
    expect(choices.map((choice) => choice.isPossible)).toEqual([true, false, true, true]);
    expect(choices[1]?.why).toBe("there is no parameter for it");
  });

  it("is chosen if it is critical or a warning; of information alone, the first", () => {
    expect([...usuallyChosen(choices)]).toEqual([1]);
    expect([...usuallyChosen(choices.slice(2))]).toEqual([3]);
  });

  it("is named in the address by levers, and `all` is what the server would choose", () => {
    expect(applyParameter(choices, [1])).toBe("all");
    expect(applyParameter(choices, [1, 3])).toBe("learning_rate,batch_size");
    expect(applyParameter(choices, [3, 4])).toBe("batch_size");
  });
});
