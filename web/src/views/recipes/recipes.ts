/** Recipes as the page shows them. */
import type { Recipe } from "~/api/documents";
import { counted, gigabytes } from "~/text/format";

export type Parameter = NonNullable<Recipe["parameters"]>[string];
export type Step = Recipe["steps"][number];

/** `1 GPU with 24 GB, 80 GB of disk`. */
export function needsOf(recipe: Recipe): string {
  const needs = recipe.needs;
  const gpus = needs?.gpus ?? 0;
  const memory = needs?.vram_gib ? ` with ${gigabytes(needs.vram_gib)}` : "";
  const gpu = gpus > 0 ? `${counted(gpus, "GPU")}${memory}` : "no GPU";
  return `${gpu}, ${gigabytes(needs?.disk_gib ?? 1)} of disk`;
}

const KINDS: Record<string, string> = { images: "pictures", text: "texts" };

/** What a dataset must be, as sentences. */
export function datasetRules(recipe: Recipe): readonly string[] {
  const rules = recipe.dataset;
  if (!rules) return [];
  if (rules.kind === "text") {
    const format = rules.text_format ? `, as ${rules.text_format} rows` : "";
    return [`Texts in JSON lines${format}; at least ${counted(rules.min_rows ?? 1, "row")}.`];
  }
  const found = [
    `At least ${counted(rules.min_images ?? 1, "picture")}${
      rules.recommended_images ? `, better ${rules.recommended_images} or more` : ""
    }.`,
    `Each side at least ${rules.min_side ?? 1} pixels${
      rules.recommended_side ? `, better ${rules.recommended_side}` : ""
    }.`,
    { required: "Every picture needs a caption.", optional: "Captions are optional, but they help.", none: "" }[
      rules.captions ?? "optional"
    ] ?? "",
    rules.control_folder ? `A picture to begin from for each, in the folder ${rules.control_folder}.` : "",
  ];
  return found.filter(Boolean);
}

export function datasetWord(recipe: Recipe): string {
  const kind = recipe.dataset?.kind ?? "images";
  return KINDS[kind] ?? kind;
}

/** What can be done with a training of this recipe while it runs and afterwards. */
export function abilitiesOf(recipe: Recipe): readonly { readonly can: boolean; readonly what: string }[] {
  return [
    { can: Boolean(recipe.stop?.save), what: "save a checkpoint when it is stopped or asked to" },
    { can: Boolean(recipe.resume), what: "resume from a checkpoint" },
    { can: Boolean(recipe.samples), what: "make samples" },
    { can: Boolean(recipe.samples?.now), what: "make samples when asked to" },
    { can: Boolean(recipe.memory), what: "estimate its GPU memory before it runs" },
  ];
}

/** Names of the secrets that its commands get, each once. */
export function secretsOf(recipe: Recipe): readonly string[] {
  const named = [
    ...recipe.steps.flatMap((step) => step.secrets ?? []),
    ...(recipe.samples?.secrets ?? []),
    ...(recipe.gated ?? []).map((each) => each.secret ?? ""),
  ];
  return [...new Set(named.filter(Boolean))];
}

/** A template with the recipe's own values in place of its parameters. */
export function withDefaults(text: string, recipe: Recipe): string {
  return text.replace(/\{\{ *parameters\.(\w+) *\}\}/g, (whole, name: string) =>
    String(recipe.parameters?.[name]?.default ?? whole),
  );
}

/** The bounds of a parameter's values: `1 to 100,000`, `512, 768 or 1024`, `at most 500 characters`. */
export function boundsOf(parameter: Parameter): string {
  if (parameter.type === "choice") return parameter.choices.join(", ");
  if (parameter.type === "str") return parameter.max_length ? `at most ${parameter.max_length} characters` : "";
  if (parameter.type === "bool") return "";
  const [least, most] = [parameter.min ?? null, parameter.max ?? null];
  if (least !== null && most !== null) return `${plain(least)} to ${plain(most)}`;
  if (least !== null) return `${plain(least)} or more`;
  return most === null ? "" : `${plain(most)} or less`;
}

function plain(value: number): string {
  return value !== 0 && Math.abs(value) < 0.001 ? value.toExponential() : value.toLocaleString("en-US");
}

/** A step's command as a shell would show it; what depends on a condition is in brackets with it. */
export function commandOf(step: Pick<Step, "argv" | "shell">): string {
  if (step.shell) return step.shell.trimEnd();
  return (step.argv ?? [])
    .map((part) => (typeof part === "string" ? quoted(part) : `[${part.argv.map(quoted).join(" ")} when ${part.when}]`))
    .join(" ");
}

function quoted(text: string): string {
  return /^[\w@%+=:,./{}| -]*$/.test(text) && !text.includes(" ") ? text : text.includes("{{") ? text : `"${text}"`;
}
