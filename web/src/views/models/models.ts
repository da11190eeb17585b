/** What a model's document says, in the words and figures of the page. */
import type { Measured, Model } from "~/api/documents";
import type { Tone } from "~/text/states";

/** What is known of the training; each figure may be missing, in models of older versions too. */
export interface Trained {
  readonly steps: number | null;
  readonly targetSteps: number | null;
  readonly firstLoss: Measured;
  readonly lastLoss: Measured;
  readonly images: number | null;
  readonly framework: string | null;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Why it is not somewhere, by place. */
  readonly notPublished: Readonly<Record<string, string>>;
}

export function trainedOf(model: Model): Trained {
  const details = (model.details ?? {}) as Record<string, unknown>;
  return {
    steps: numberOf(details.steps),
    targetSteps: numberOf(details.target_steps),
    firstLoss: details.first_loss as Measured,
    lastLoss: details.last_loss as Measured,
    images: numberOf(details.images),
    framework: typeof details.framework === "string" ? details.framework : null,
    parameters: recordOf(details.parameters),
    notPublished: Object.fromEntries(Object.entries(recordOf(details.not_published)).map(([k, v]) => [k, String(v)])),
  };
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** A parameter's value as a person writes it. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined || value === "") return "–";
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "number" && value !== 0 && Math.abs(value) < 0.001)
    return value.toExponential().replace("e-0", "e-");
  return String(value);
}

const PLACES: Record<string, string> = { home: "Here", bucket: "Bucket", hub: "Hub" };

export function placeWord(kind: string): string {
  return PLACES[kind] ?? kind;
}

interface Registered {
  readonly tone: Tone;
  readonly mark: string;
  readonly word: string;
}

/** How far the registration with ComfyDeploy is; null where it was not requested. */
export function registrationOf(model: Model): Registered | null {
  switch (model.registration.state) {
    case "DONE":
      return { tone: "good", mark: "✓", word: "Registered" };
    case "STARTED":
      return { tone: "running", mark: "◔", word: "Being registered" };
    case "DUE":
      return { tone: "attention", mark: "▲", word: "To be registered" };
    default:
      return null;
  }
}

export interface ModelFilter {
  readonly text: string;
  readonly recipe: string;
  readonly place: string;
}

/** Whether a model matches the search. */
export function isWanted(model: Model, { text, recipe, place }: ModelFilter): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const about = [model.name, model.slug, model.trigger, model.recipe, model.base_model, model.owner, model.file_name]
    .join(" ")
    .toLowerCase();
  if (!words.every((word) => about.includes(word))) return false;
  if (recipe && recipeName(model.recipe) !== recipe) return false;
  if (place === "comfydeploy") return model.registration.state === "DONE";
  return !place || (model.places ?? []).some((each) => each.kind === place);
}

/** `flux-lora` of `flux-lora@2`. */
export function recipeName(reference: string): string {
  return reference.split("@", 1)[0] ?? reference;
}
