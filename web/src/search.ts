/** Search parameters of addresses as people write them: several values are the same name several times. */
import { defaultStringifySearch } from "@tanstack/react-router";

/** `?jobs=a&jobs=b` instead of a list in JSON; the router reads both. A list of one stays JSON, or it would be read as a text. */
export function stringifySearch(search: Record<string, unknown>): string {
  const single = Object.entries(search).filter(([, value]) => !isPlainList(value));
  const written = new URLSearchParams(defaultStringifySearch(Object.fromEntries(single)));
  for (const [name, values] of Object.entries(search)) {
    if (isPlainList(values)) for (const value of values) written.append(name, value);
  }
  const text = written.toString();
  return text ? `?${text}` : "";
}

function isPlainList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 1 && value.every((one) => typeof one === "string");
}
