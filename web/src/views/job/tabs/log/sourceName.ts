import type { Source } from "./LogBook";

/** Which step of the plan, and which try of it, wrote a part of the log: "train, try 2". */
export function sourceName(source: Source, steps: readonly { readonly name: string }[], attempts: number): string {
  const [step, number] = source.stream.split(".");
  const named = step !== undefined && /^\d+$/.test(step) ? steps[Number(step)]?.name : undefined;
  const parts = [named ?? (named === undefined && step !== undefined ? `step ${step}` : source.stream)];
  if (number !== undefined && number !== "1") parts.push(`try ${number}`);
  if (attempts > 1) parts.push(`attempt ${source.attempt}`);
  return parts.join(", ");
}
