/** Values of settings as people write them. */
import { figure, UNKNOWN } from "~/text/format";

/** `2`, `20000`, `1.0e-4`, `on`, `512, 768`; a dash where there is none. */
export function settingValue(value: unknown): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value === "boolean") return value ? "on" : "off";
  if (typeof value === "number")
    return Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) : figure(value);
  if (Array.isArray(value)) return value.map(settingValue).join(", ");
  if (typeof value === "object") return JSON.stringify(value);
  return value === "" ? "“”" : String(value);
}

const AROUND: Record<string, string> = {
  "machine.memory_gb": "machine memory",
  "machine.gpu_memory_gb": "GPU memory",
  "machine.gpu": "GPU",
  "machine.shm_gb": "shared memory",
  "machine.disk_gb": "disk size",
  "machine.disk": "disk",
  "machine.network": "network",
  "machine.cooling": "cooling",
  "machine.power_limit_watts": "power limit",
  "machine.driver": "GPU driver",
  "machine.host": "machine",
  "environment.trainer": "trainer version",
  "environment.torch": "PyTorch version",
  "credentials.hf_token": "Hugging Face token",
};

const UNITS: Record<string, string> = { _gb: "GB", _watts: "W" };

/** A setting's name in words: `batch size`, `GPU memory`. */
export function settingName(lever: string): string {
  return AROUND[lever] ?? lever.replaceAll("_", " ");
}

/** The unit that a setting's name carries, with a space in front: ` GB`. */
export function settingUnit(lever: string): string {
  const unit = Object.entries(UNITS).find(([ending]) => lever.endsWith(ending))?.[1];
  return unit ? ` ${unit}` : "";
}
