/** For what a training's money was spent. */
import type { PaidLine } from "~/api/documents";
import type { Tone } from "~/text/states";

export interface CostPart {
  readonly name: string;
  readonly meaning: string;
  readonly usd: number;
  readonly tone: Tone;
}

export function totalOf(lines: readonly PaidLine[]): number {
  return lines.reduce((sum, line) => sum + line.amount_micros, 0) / 1e6;
}

/** Training, set-up, stalled and idle, in dollars; their sum is the total. */
export function partsOf(lines: readonly PaidLine[]): readonly CostPart[] {
  const sum = (share: (line: PaidLine) => number) => lines.reduce((all, line) => all + share(line), 0) / 1e6;
  const setup = sum((line) => line.setup_micros ?? 0);
  return [
    { name: "Trained", meaning: "the training made progress", usd: sum((line) => line.training_micros), tone: "good" },
    { name: "Set-up", meaning: "before the training began", usd: setup, tone: "running" },
    { name: "Stalled", meaning: "it ran without progress", usd: sum((line) => line.stalled_micros), tone: "bad" },
    {
      name: "Idle",
      meaning: "after the training ended",
      usd: sum((line) => line.idle_micros) - setup,
      tone: "waiting",
    },
  ];
}
