/** Which of a run's series the page draws where. */

export const LOSS = "loss";
export const STEP_TIME = "step_time_seconds";
export const LEARNING_RATE = "learning_rate";
export const GRADIENT_NORM = "gradient_norm";

const STEP_NAMES = [LOSS, STEP_TIME, LEARNING_RATE, GRADIENT_NORM, "batch_size"];
const MACHINE = /^(gpu\d+\.|gpu_|total_|used_|available_|swap_|main_process_|worker_|cpu_|disk_|network_|training_)/;
const OF_INSTANCES = new Set([
  "memory_percent",
  "cost_per_hour_usd",
  "total_cost_usd",
  "steps_per_second",
  "gpu_percent",
]);
const MOST_OWN = 12;

/** Values that the trainer recorded under a name of its own, such as a reward or a validation loss. */
export function ownNames(names: readonly string[]): string[] {
  const own = names.filter((name) => !STEP_NAMES.includes(name) && !MACHINE.test(name) && !OF_INSTANCES.has(name));
  return own.filter((name) => !name.includes("Sample.")).slice(0, MOST_OWN);
}

export function stepNames(names: readonly string[]): string[] {
  const drawn = [LOSS, STEP_TIME, LEARNING_RATE, GRADIENT_NORM];
  return [...drawn.filter((name) => names.includes(name)), ...ownNames(names)];
}

const MACHINE_DRAWN = [
  "used_memory_gb",
  "total_memory_gb",
  "gpu_memory_used_gb",
  "gpu_utilization_percent",
  "cpu_utilization_percent",
];

/** GPUs one by one where they were measured so, otherwise all together. */
export function machineNames(names: readonly string[]): string[] {
  const gpus = names.filter((name) => /^gpu\d+\.(memory_used_gb|memory_total_gb|utilization_percent)$/.test(name));
  const rest = MACHINE_DRAWN.filter((name) => names.includes(name));
  return gpus.length > 0 ? [...gpus, ...rest.filter((name) => !name.startsWith("gpu_"))] : rest;
}

/** `val_loss` → `Val loss`. */
export function titleOf(name: string): string {
  const words = name.replaceAll(/[_/.]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
