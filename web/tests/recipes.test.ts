import { describe, expect, it } from "vitest";
import { isWanted, trainedOf, valueText } from "~/views/models/models";
import { boundsOf, commandOf, datasetRules, needsOf, secretsOf, withDefaults } from "~/views/recipes/recipes";

type Recipe = Parameters<typeof needsOf>[0];
type Model = Parameters<typeof trainedOf>[0];

const recipe = {
  name: "portrait",
  version: 1,
  parameters: { base: { type: "str", default: "a/model", help: "The base." } },
  needs: { gpus: 1, vram_gib: 24, disk_gib: 80 },
  dataset: { kind: "images", min_images: 10, recommended_images: 20, min_side: 256, captions: "required" },
  steps: [{ name: "train", secrets: ["HF_TOKEN"], argv: ["python3", "two words", { when: "a", argv: ["--x"] }] }],
  gated: [{ repository: "{{ parameters.base }}", secret: "HF_TOKEN" }],
} as unknown as Recipe;

describe("a recipe in words", () => {
  it("says what it needs", () => {
    expect(needsOf(recipe)).toBe("1 GPU with 24 GB, 80 GB of disk");
    expect(secretsOf(recipe)).toEqual(["HF_TOKEN"]);
    expect(withDefaults("{{ parameters.base }} of {{ job.name }}", recipe)).toBe("a/model of {{ job.name }}");
  });

  it("says what a dataset must be", () => {
    expect(datasetRules(recipe)).toEqual([
      "At least 10 pictures, better 20 or more.",
      "Each side at least 256 pixels.",
      "Every picture needs a caption.",
    ]);
  });

  it("shows commands and bounds", () => {
    expect(commandOf(recipe.steps[0] as never)).toBe('python3 "two words" [--x when a]');
    expect(boundsOf({ type: "int", min: 1, max: 100_000, help: "" })).toBe("1 to 100,000");
    expect(boundsOf({ type: "float", min: 1e-7, help: "" })).toBe("1e-7 or more");
    expect(boundsOf({ type: "choice", choices: ["512", "768"], help: "" } as never)).toBe("512, 768");
  });
});

const model = {
  name: "hills-v2",
  slug: "hills-v2-91ab",
  trigger: "smland",
  recipe: "flux-lora@2",
  file_name: "hills.safetensors",
  details: { steps: 300, last_loss: "NaN", not_published: { hub: "no token" } },
  places: [{ kind: "home" }],
  registration: { state: "NO" },
} as unknown as Model;

describe("a model", () => {
  it("is found by every word and by its place", () => {
    const any = { text: "", recipe: "", place: "" };
    expect(isWanted(model, { ...any, text: "smland HILLS" })).toBe(true);
    expect(isWanted(model, { ...any, text: "smland dogs" })).toBe(false);
    expect(isWanted(model, { ...any, recipe: "flux-lora", place: "home" })).toBe(true);
    expect(isWanted(model, { ...any, place: "hub" })).toBe(false);
    expect(isWanted(model, { ...any, place: "comfydeploy" })).toBe(false);
  });

  it("tells what is known of its training", () => {
    const trained = trainedOf(model);
    expect([trained.steps, trained.targetSteps, trained.lastLoss]).toEqual([300, null, "NaN"]);
    expect(trained.notPublished).toEqual({ hub: "no token" });
    expect([1e-4, true, [512, 768], null].map(valueText)).toEqual(["1e-4", "true", "512, 768", "–"]);
  });
});
