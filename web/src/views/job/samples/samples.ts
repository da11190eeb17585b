/** The sample pictures of a job, ordered by prompt and training step. */
import type { Artifact } from "~/api/documents";
import { count } from "~/text/format";

/** The training step of a sample; null where its name does not tell. */
export type Step = number | null;

export interface Sample {
  readonly job: string;
  readonly attempt: number;
  readonly path: string;
  readonly sha256: string | null;
}

export interface Prompt {
  /** The same for the same prompt in every job. */
  readonly key: string;
  readonly text: string;
}

export interface SampleSet {
  /** In order; those without a known step come last. */
  readonly steps: readonly Step[];
  readonly prompts: readonly Prompt[];
  at(step: Step, prompt: string): Sample | null;
}

/** Pictures that can be shown. Where a later attempt made the same sample again, that one counts. */
export function samplesOf(job: string, artifacts: readonly Artifact[]): SampleSet {
  const pictures = artifacts.filter((one) => one.kind === "sample" && one.is_image && one.is_available);
  const numbers = [...new Set(pictures.map((one) => one.prompt_number ?? 0))].sort((a, b) => a - b);
  const keys = promptKeys(numbers, pictures);
  const steps = [...new Set(pictures.map((one) => one.step ?? null))].sort(byStep);
  const found = new Map<string, Artifact>();
  for (const one of [...pictures].sort((a, b) => a.attempt - b.attempt)) {
    found.set(`${one.step ?? null} ${keys.get(one.prompt_number ?? 0)?.key}`, one);
  }
  return {
    steps,
    prompts: [...keys.values()],
    at: (step, prompt) => {
      const one = found.get(`${step} ${prompt}`);
      return one ? { job, attempt: one.attempt, path: one.path, sha256: one.sha256 ?? null } : null;
    },
  };
}

function promptKeys(numbers: readonly number[], pictures: readonly Artifact[]): Map<number, Prompt> {
  const keys = new Map<number, Prompt>();
  const used = new Set<string>();
  for (const number of numbers) {
    const text = pictures.find((one) => (one.prompt_number ?? 0) === number && one.prompt)?.prompt ?? null;
    const isNew = text !== null && !used.has(text);
    if (text !== null) used.add(text);
    keys.set(number, { key: isNew ? text : `#${number}`, text: text ?? `Sample ${number + 1}` });
  }
  return keys;
}

function byStep(a: Step, b: Step): number {
  return (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY);
}

/** The step of the set that is nearest to the wanted one; the last one if none is wanted. */
export function nearestStep(set: SampleSet, wanted: number | null): Step {
  if (wanted === null) return set.steps.at(-1) ?? null;
  const distance = (step: Step) => (step === null ? Number.POSITIVE_INFINITY : Math.abs(step - wanted));
  return set.steps.reduce<Step>((best, step) => (distance(step) < distance(best) ? step : best), set.steps[0] ?? null);
}

/** All prompts of several sets, each once, in the order in which they are met. */
export function allPrompts(sets: readonly SampleSet[]): readonly Prompt[] {
  const found = new Map<string, Prompt>();
  for (const prompt of sets.flatMap((set) => set.prompts)) if (!found.has(prompt.key)) found.set(prompt.key, prompt);
  return [...found.values()];
}

export function stepText(step: Step): string {
  return step === null ? "step unknown" : `step ${count(step)}`;
}

/** The address of a small picture of a sample; with its hash the browser need not ask again. */
export function thumbnailAddress(sample: Sample, width: 256 | 512 | 1024): string {
  const query = new URLSearchParams({ width: String(width), attempt: String(sample.attempt), exact: "true" });
  if (sample.sha256) query.set("sha256", sample.sha256);
  return `/api/jobs/${encodeURIComponent(sample.job)}/thumbnails/${pathText(sample.path)}?${query}`;
}

/** The address under which a file of a job is downloaded. */
export function downloadAddress(file: { job: string; attempt: number; path: string }): string {
  const query = new URLSearchParams({ attempt: String(file.attempt), exact: "true" });
  return `/api/jobs/${encodeURIComponent(file.job)}/artifacts/${pathText(file.path)}?${query}`;
}

function pathText(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}
