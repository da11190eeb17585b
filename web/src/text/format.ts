/** Numbers, money and times as people read them. Unknown is always a dash, never 0. */
import type { Measured } from "~/api/documents";

export const UNKNOWN = "–";
const HOUR_SECONDS = 3600;

/** A measured value as a number; null where it is unknown or not finite. */
export function finite(value: Measured): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** `$1.24`, `$0.04`, `$0.003`, `$1,204`. */
export function dollars(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return UNKNOWN;
  const size = Math.abs(usd);
  return written(usd, size >= 1000 ? 0 : size === 0 || size >= 0.01 ? 2 : size >= 0.001 ? 3 : 4);
}

/** `$0.31/h`; small prices to a tenth of a cent, which a whole day makes cents of: `$0.082/h`. */
export function dollarsPerHour(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return UNKNOWN;
  const size = Math.abs(usd);
  return size >= 0.01 && size < 0.1 ? `${written(usd, 3)}/h` : `${dollars(usd)}/h`;
}

function written(usd: number, digits: number): string {
  const text = Math.abs(usd).toLocaleString("en-US", {
    minimumFractionDigits: Math.min(digits, 2),
    maximumFractionDigits: digits,
  });
  return `${usd < 0 ? "−" : ""}$${text}`;
}

/** `48 s`, `2 min`, `2 h 14 min`, `3 d 4 h`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return UNKNOWN;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return hours % 24 === 0 ? `${hours / 24} d` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `12,400`. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? UNKNOWN : value.toLocaleString("en-US");
}

/** How the server writes measured values that are not finite, and how a person reads them. */
const NOT_FINITE: Readonly<Record<string, string>> = {
  NaN: "not a number",
  Infinity: "infinite",
  "-Infinity": "−infinite",
};

/** Four significant digits, for losses and learning rates: `0.08412`, `1.2e-4`, `12,345`. */
export function figure(value: Measured): string {
  const number = finite(value);
  if (number === null) return NOT_FINITE[String(value)] ?? UNKNOWN;
  const size = Math.abs(number);
  if (number !== 0 && size < 0.001) return number.toExponential(1).replace("e-0", "e-");
  if (size >= 1e9) return number.toExponential(1).replace("e+", "e");
  if (size >= 10_000) return number.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return String(Number(number.toPrecision(4)));
}

/** The same at an axis, where there is room for a few characters: `3e6`. */
export function shortFigure(value: number): string {
  return Math.abs(value) >= 100_000 ? value.toExponential(0).replace("e+", "e") : figure(value);
}

/** `76 %`, never broken before its sign. */
export function percent(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? UNKNOWN : `${Math.round(value)}\u00a0%`;
}

/** `7.4 steps/s`, or `3.2 s/step` where a step takes longer than a second. */
export function speed(stepsPerSecond: Measured): string {
  const value = finite(stepsPerSecond);
  if (value === null || value <= 0) return UNKNOWN;
  return value >= 1 ? `${Number(value.toPrecision(2))} steps/s` : `${Number((1 / value).toPrecision(2))} s/step`;
}

/** `0.75 steps/s`: always in the unit of a chart's axis. */
export function stepsPerSecond(value: Measured): string {
  const number = finite(value);
  return number === null ? UNKNOWN : `${Number(number.toPrecision(3))} steps/s`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** `18.2 GB`, by thousands as disks and downloads are sold. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${UNITS[unit]}`;
}

/** `18.2 / 24.0 GB (76 %)`. */
export function memoryOf(used: number | null | undefined, total: number | null | undefined): string {
  if (used === null || used === undefined) return UNKNOWN;
  if (total === null || total === undefined || total <= 0) return `${used.toFixed(1)} GB`;
  return `${used.toFixed(1)} / ${total.toFixed(1)} GB (${percent((used / total) * 100)})`;
}

/** `119 GB / 120 GB (99 %)`, `9.4 GB / 12 GB (78 %)`. */
export function peakOf(used: number | null | undefined, total: number | null | undefined): string {
  if (used === null || used === undefined) return UNKNOWN;
  if (total === null || total === undefined || total <= 0) return gigabytes(used);
  return `${gigabytes(used)} / ${gigabytes(total)} (${percent((used / total) * 100)})`;
}

/** `119 GB`, `9.4 GB`: whole from 20 GB on. */
export function gigabytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  return `${value >= 20 ? value.toFixed(0) : Number(value.toFixed(value >= 1 ? 1 : 2))} GB`;
}

/** `just now`, `3 min ago`, `in 2 h`: in one unit, since the exact time is never far. */
export function relative(at: number, now: number): string {
  const seconds = Math.round((now - at) / 1000);
  if (Math.abs(seconds) < 5) return "just now";
  return seconds > 0 ? `${roughly(seconds)} ago` : `in ${roughly(-seconds)}`;
}

function roughly(seconds: number): string {
  if (seconds < HOUR_SECONDS) return duration(seconds);
  const hours = Math.round(seconds / HOUR_SECONDS);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}

/** `14:02`, with the day if it is another one. */
export function clock(at: number, now: number = Date.now()): string {
  const time = new Date(at);
  const hours = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  if (time.toDateString() === new Date(now).toDateString()) return hours;
  return `${time.toLocaleDateString([], { day: "numeric", month: "short" })}, ${hours}`;
}

/** `17 November 2026, 14:02:31 UTC+1`, for tooltips. */
export function exactly(at: number): string {
  return new Date(at).toLocaleString([], { dateStyle: "long", timeStyle: "long" });
}

/** ISO 8601 of seconds since 1970; null for a time that no calendar has, which a strange machine may send. */
export function isoTime(seconds: number | null | undefined): string | null {
  const at = new Date((seconds ?? Number.NaN) * 1000);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

/** `1 job`, `3 jobs`. */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}
