/** A draft as the requests of the API. */
import type { EstimateBody, JobFile, Recipe, RetryBody } from "~/api/documents";
import type { Retry } from "../prefill";
import type { RetryBase } from "../retry/base";
import type { Draft } from "./draft";
import { textOf, typedValue, type Value } from "./parameters";

/** The typed parameters of this recipe. A text that is not allowed is left out: the form says what is wrong with it. */
export function typedParameters(draft: Draft, recipe: Recipe): Record<string, Value> {
  const found: Record<string, Value> = {};
  for (const [name, parameter] of Object.entries(recipe.parameters ?? {})) {
    const text = draft.parameters[name];
    if (text === undefined || (text === "" && parameter.type !== "str")) continue;
    const value = typedValue(parameter, text);
    if (value !== null) found[name] = value;
  }
  return found;
}

export function jobFileOf(draft: Draft, recipe: Recipe): JobFile {
  const monitoring = monitoringOf(draft);
  return {
    recipe: referenceOf(recipe),
    dataset: draft.dataset,
    name: draft.name.trim() || null,
    trigger: draft.trigger.trim() || null,
    parameters: typedParameters(draft, recipe),
    provider: draft.provider.trim() || null,
    max_price: amount(draft.maxPrice),
    max_hours: numberOf(draft.maxHours),
    max_spend: amount(draft.maxSpend),
    machine: machineOf(draft),
    monitoring: Object.keys(monitoring).length > 0 ? monitoring : null,
  };
}

export function estimateOf(draft: Draft, recipe: Recipe, images: number): EstimateBody {
  return {
    recipe: referenceOf(recipe),
    images,
    parameters: typedParameters(draft, recipe),
    provider: draft.provider.trim() || null,
    max_price: amount(draft.maxPrice),
    max_hours: numberOf(draft.maxHours),
    max_spend: amount(draft.maxSpend),
    machine: machineOf(draft),
  };
}

/** Only what differs from the proposal that the retry would be by itself. */
export function retryOf(draft: Draft, recipe: Recipe, retry: Retry, base: RetryBase): RetryBody {
  const typed = typedParameters(draft, recipe);
  const changed = Object.entries(typed).filter(
    ([name, value]) => textOf(base.terms.parameters[name]) !== textOf(value),
  );
  return {
    ...retryBody(retry),
    name: draft.name.trim() !== base.job.name ? draft.name.trim() || null : null,
    trigger: draft.trigger !== (base.job.trigger ?? "") ? draft.trigger : null,
    parameters: Object.fromEntries(changed),
    max_price: amount(draft.maxPrice),
    max_hours: numberOf(draft.maxHours),
    max_spend: amount(draft.maxSpend),
    machine: machineOf(draft),
  };
}

export function retryBody(retry: Retry): RetryBody {
  return {
    resume: retry.resume,
    apply_recommendations: retry.apply !== "nothing",
    only: typeof retry.apply === "string" ? [] : [...retry.apply],
    parameters: {},
  };
}

export function referenceOf(recipe: Recipe): string {
  return `${recipe.name}@${recipe.version}`;
}

/** Exactly as typed: a price must not become another one by being read as a binary fraction. */
function amount(text: string): string | null {
  return text.trim() || null;
}

function numberOf(text: string): number | null {
  const value = Number(text);
  return text.trim() !== "" && Number.isFinite(value) ? value : null;
}

function machineOf(draft: Draft): JobFile["machine"] {
  const asked = { gpus: numberOf(draft.gpus), vram_gib: numberOf(draft.vramGib), disk_gib: numberOf(draft.diskGib) };
  return Object.values(asked).every((value) => value === null) ? null : asked;
}

function monitoringOf(draft: Draft): Record<string, unknown> {
  const { graceMinutes, sampleSeconds, memoryWarning, analyse } = draft.monitoring;
  const found: Record<string, unknown> = {};
  if (graceMinutes) found.grace_period = `${graceMinutes}m`;
  if (sampleSeconds) found.sample_interval_seconds = Number(sampleSeconds);
  if (memoryWarning) found.memory_warning_threshold = Number(memoryWarning) / 100;
  if (analyse === "false") found.analyze_on_complete = false;
  return found;
}
