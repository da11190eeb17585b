/** How a new job differs from the one that it repeats. */
import type { Recipe } from "~/api/documents";
import type { Draft } from "../form/draft";
import { labelOf } from "../form/groups";
import { shownValue, textOf, typedValue } from "../form/parameters";
import type { RetryBase } from "./base";

export interface Difference {
  readonly what: string;
  readonly before: string;
  readonly after: string;
  /** The recommendation that it follows; null: it was typed. */
  readonly advice: string | null;
}

export function differencesOf(draft: Draft, recipe: Recipe, { job, terms }: RetryBase): readonly Difference[] {
  const found: Difference[] = [];
  const add = (what: string, before: unknown, after: unknown, advice: string | null = null) =>
    found.push({ what, before: shownValue(before), after: shownValue(after), advice });
  if (draft.name.trim() !== job.name) add("Name", job.name, draft.name.trim());
  if (draft.trigger !== (job.trigger ?? "")) add("Trigger", job.trigger, draft.trigger);
  for (const [name, parameter] of Object.entries(recipe.parameters ?? {})) {
    const before = job.parameters[name] ?? parameter.default ?? null;
    const text = draft.parameters[name] ?? textOf(parameter.default);
    if (textOf(before) === text) continue;
    const advice = terms.applied?.find((one) => one.what === name && textOf(one.after) === text);
    add(labelOf(name), before, typedValue(parameter, text) ?? text, advice?.title ?? null);
  }
  for (const one of terms.applied ?? []) {
    if (!(one.what in (recipe.parameters ?? {}))) add(one.what, one.before, one.after, one.title);
  }
  if (draft.gpus) add("Requested GPUs", job.machine.gpus, draft.gpus);
  if (draft.vramGib) add("Requested GPU memory, in GB", job.machine.vram_gib, draft.vramGib);
  if (draft.diskGib) add("Requested disk, in GB", job.machine.disk_gib, draft.diskGib);
  if (draft.maxPrice) add("Highest price per hour, in dollars", job.limits.max_price_per_hour_usd, draft.maxPrice);
  if (draft.maxHours) add("Stop after, in hours", job.limits.max_hours, draft.maxHours);
  if (draft.maxSpend) add("Stop at a cost of, in dollars", job.limits.max_spend_usd, draft.maxSpend);
  return found;
}
