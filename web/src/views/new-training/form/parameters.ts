/** A recipe's parameters as a form has them: texts that are checked before anything is sent. */
import type { Recipe } from "~/api/documents";
import { count } from "~/text/format";

export type Parameter = NonNullable<Recipe["parameters"]>[string];
export type Value = number | string | boolean;

/** What is wrong with a typed value, in words; null: nothing. An empty text is the default. */
export function problemOfText(parameter: Parameter, text: string): string | null {
  if (text === "" && parameter.type !== "str") {
    return (parameter.default ?? null) === null ? `Give ${allowed(parameter)}.` : null;
  }
  const value = typedValue(parameter, text);
  return value === null ? `Use ${allowed(parameter)}.` : null;
}

/** The value that a text stands for; null: it is not allowed. */
export function typedValue(parameter: Parameter, text: string): Value | null {
  switch (parameter.type) {
    case "int":
      return /^[+-]?\d{1,15}$/.test(text.trim()) ? within(parameter, Number(text)) : null;
    case "float":
      return isNumber(text) ? within(parameter, Number(text)) : null;
    case "bool":
      return text === "true" ? true : text === "false" ? false : null;
    case "choice":
      return parameter.choices.includes(text) ? text : null;
    case "str":
      return text.length <= (parameter.max_length ?? Number.POSITIVE_INFINITY) ? text : null;
  }
}

/** `a whole number from 1 to 9`. */
export function allowed(parameter: Parameter): string {
  switch (parameter.type) {
    case "int":
      return `a whole number${bounds(parameter)}`;
    case "float":
      return `a number${bounds(parameter)}`;
    case "bool":
      return "yes or no";
    case "choice":
      return `one of ${parameter.choices.join(", ")}`;
    case "str":
      return `a text of at most ${count(parameter.max_length)} characters`;
  }
}

/** A value as its field shows it. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Math.abs(value) < 1e-4 && value !== 0 ? value.toExponential() : String(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A value as a sentence shows it. */
export function shownValue(value: unknown): string {
  if (value === null || value === undefined || value === "") return "nothing";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : textOf(value);
  const text = textOf(value).replaceAll("\n", " ");
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

export function isNumber(text: string): boolean {
  return text.trim() !== "" && !/[_x]/i.test(text) && Number.isFinite(Number(text));
}

function within(parameter: { min?: number | null; max?: number | null }, value: number): number | null {
  const { min, max } = parameter;
  const isBelow = min !== null && min !== undefined && value < min;
  const isAbove = max !== null && max !== undefined && value > max;
  return isBelow || isAbove ? null : value;
}

function bounds({ min, max }: { min?: number | null; max?: number | null }): string {
  const low = min ?? null;
  const high = max ?? null;
  if (low !== null && high !== null) return ` from ${shownValue(low)} to ${shownValue(high)}`;
  if (low !== null) return ` of at least ${shownValue(low)}`;
  return high === null ? "" : ` of at most ${shownValue(high)}`;
}
