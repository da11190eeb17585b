/** Which recommendations a new job can follow, and how the form's address names them. */
import type { Recommendation, Terms } from "~/api/documents";

export interface Choice {
  /** Its place in the analysis, from 1. */
  readonly number: number;
  readonly recommendation: Recommendation;
  readonly isPossible: boolean;
  /** Why it cannot be applied, or why it has no effect beside the others. */
  readonly why: string | null;
}

/** `terms`: those of a job that follows all the recommendations. */
export function choicesOf(recommendations: readonly Recommendation[], terms: Terms): readonly Choice[] {
  const applied = new Map((terms.applied ?? []).map((one) => [one.number, one]));
  const skipped = new Map((terms.skipped ?? []).map((one) => [one.number, one]));
  const isSet = (recommendation: Recommendation) =>
    [...applied.values()].some((one) => {
      const other = recommendations[one.number - 1];
      return other?.lever === recommendation.lever || one.config_path === recommendation.config_path;
    });
  return recommendations.map((recommendation, place) => {
    const number = place + 1;
    // Of two for one setting the first counts; without it the second can be applied.
    const isPossible = applied.has(number) || isSet(recommendation);
    return { number, recommendation, isPossible, why: skipped.get(number)?.why ?? null };
  });
}

/** All that is critical or a warning, as the server does it: information names alternatives and extras. */
export function usuallyChosen(choices: readonly Choice[]): ReadonlySet<number> {
  const possible = choices.filter((choice) => choice.isPossible);
  const urgent = possible.filter((choice) => choice.recommendation.severity !== "info");
  return new Set((urgent.length > 0 ? urgent : possible.slice(0, 1)).map((choice) => choice.number));
}

/** `all`, or the chosen levers with commas between. */
export function applyParameter(choices: readonly Choice[], numbers: readonly number[]): string {
  const urgent = choices.filter((choice) => choice.isPossible && choice.recommendation.severity !== "info");
  const isUsual = urgent.length === numbers.length && urgent.every((choice) => numbers.includes(choice.number));
  if (isUsual) return "all";
  const levers = numbers.map((number) => choices[number - 1]?.recommendation.lever ?? String(number));
  return [...new Set(levers)].join(",");
}
