/** The zoom of compared charts as the address has it: `200-450` in steps, `12.5-90` in seconds since the start. */
import type { Range } from "~/charts/series";

const RANGE = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/;

export function zoomText(range: Range | null, digits: 0 | 1): string | null {
  if (range === null) return null;
  const unit = 10 ** -digits;
  const from = Math.max(0, Math.floor(range.from / unit) * unit);
  return `${from.toFixed(digits)}-${Math.max(from + unit, Math.ceil(range.to / unit) * unit).toFixed(digits)}`;
}

export function zoomOf(text: string | null): Range | null {
  const found = RANGE.exec(text ?? "");
  const [from, to] = [Number(found?.[1]), Number(found?.[2])];
  return from < to ? { from, to } : null;
}
