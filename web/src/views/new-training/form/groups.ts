/** Parameters in the order in which people think about them. Recipes name theirs freely: what no group knows is
 * training, and what says in its name that it is about a machine's files is rare. */
import type { Parameter } from "./parameters";

export interface Group {
  readonly title: string;
  readonly parameters: readonly (readonly [string, Parameter])[];
  readonly isRare: boolean;
}

const GROUPS: readonly { readonly title: string; readonly names: RegExp; readonly isRare?: boolean }[] = [
  { title: "Model", names: /^(base_model|model|rank|alpha|(network|lora)_.*|.*resolution|context|text_encoder.*)$/ },
  { title: "Saving and samples", names: /^(save_.*|keep_.*|sample_.*|.*_prompts|checkpoint_every)$/ },
  {
    title: "Rarely changed",
    names:
      /^(seed|python|trainer|workers|.*_mb|.*_gb|fault.*|low_vram|prepare|packing|gradient_checkpointing|.*_path|.*_folder|.*_dropout|max_grad_norm|weight_decay|quantize.*|dtype|.*_dtype|no_half_vae|cache_.*|ema|seconds_per_step|.*_decay)$/,
    isRare: true,
  },
];

export function groupsOf(parameters: Readonly<Record<string, Parameter>>): readonly Group[] {
  const all = Object.entries(parameters);
  const inGroup = (name: string) => GROUPS.find((group) => group.names.test(name));
  const found: Group[] = [
    { title: "Training", isRare: false, parameters: all.filter(([name]) => inGroup(name) === undefined) },
    ...GROUPS.map((group) => ({
      title: group.title,
      isRare: group.isRare ?? false,
      parameters: all.filter(([name]) => inGroup(name) === group),
    })),
  ];
  return found.filter((group) => group.parameters.length > 0);
}

/** `learning_rate` as a label: `Learning rate`; `lora_dropout`: `LoRA dropout`. */
export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ").replace(/\blora\b/, "LoRA");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
