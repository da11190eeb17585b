/** What is wrong with a draft, by field, before a request is sent; and which field a refusal of the server is about. */
import type { Recipe } from "~/api/documents";
import { asProblem } from "~/api/problem";
import type { Draft } from "./draft";
import { isNumber, problemOfText } from "./parameters";

/** By field: `dataset`, `name`, `maxPrice`, …; parameters as `parameters.steps`. */
export type Problems = Readonly<Record<string, string>>;

const LONGEST_NAME = 120;

export function problemsOf(draft: Draft, recipe: Recipe): Problems {
  const found: Record<string, string> = {};
  for (const [name, parameter] of Object.entries(recipe.parameters ?? {})) {
    const text = draft.parameters[name];
    const problem =
      text === undefined && (parameter.default ?? null) !== null ? null : problemOfText(parameter, text ?? "");
    if (problem) found[`parameters.${name}`] = problem;
  }
  if (draft.name.length > LONGEST_NAME) found.name = `Use up to ${LONGEST_NAME} characters.`;
  for (const [field, example] of AMOUNTS) {
    const text = draft[field];
    if (text !== "" && !(isNumber(text) && Number(text) > 0))
      found[field] = `Use a number above zero, such as ${example}.`;
  }
  const address = draft.dataset;
  if (address && !/^(upload:|s3:\/\/.+|hf:\/\/datasets\/.+)/.test(address)) {
    found.dataset = "Use s3://BUCKET/PREFIX or hf://datasets/OWNER/NAME, or upload the files.";
  }
  return found;
}

const AMOUNTS = [
  ["maxPrice", "0.60"],
  ["maxHours", "4"],
  ["maxSpend", "5"],
  ["gpus", "1"],
  ["vramGib", "24"],
  ["diskGib", "100"],
] as const;

const FIELDS: readonly (readonly [RegExp, string])[] = [
  [/^max_price\b/, "maxPrice"],
  [/^max_hours\b/, "maxHours"],
  [/^max_spend\b/, "maxSpend"],
  [/^machine\.gpus\b|\bGPU, (but|so) /, "gpus"],
  [/^machine\b/, "vramGib"],
  [/job name/, "name"],
  [/\btrigger\b/, "trigger"],
  [/\bprovider\b/, "provider"],
  [/\bmay train on\b|\b(dataset|upload)\b/, "dataset"],
];

/** The field that a refusal is about; null: it is about the whole. */
export function fieldOf(error: unknown): string | null {
  const problem = asProblem(error);
  const parameter =
    /^parameter (\S+) of /.exec(problem.message) ??
    /needs the parameter (\S+):/.exec(problem.message) ??
    /has no parameter `(\S+)`/.exec(problem.message);
  if (parameter) return `parameters.${parameter[1]}`;
  if (problem.kind === "DatasetInvalid") return "dataset";
  if (problem.status !== 422 && problem.status !== 400 && problem.status !== 404 && problem.status !== 403) return null;
  return FIELDS.find(([words]) => words.test(problem.message))?.[1] ?? null;
}

/** The problems of a form with that of the server at its field. */
export function withRefusal(problems: Problems, error: unknown): Problems {
  const field = error ? fieldOf(error) : null;
  if (field === null || problems[field]) return problems;
  const { message, hint } = asProblem(error);
  return { ...problems, [field]: hint ? `${message}. ${hint}` : message };
}
