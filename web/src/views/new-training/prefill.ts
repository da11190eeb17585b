/** What the address asks the form to begin with: `/new?recipe=…`, `?dataset=…`, `?retry=JOB&apply=all&resume=1`. */
import { useLocation } from "@tanstack/react-router";
import { useMemo, useRef } from "react";

export interface Retry {
  readonly job: string;
  /** Follow the analysis: everything that is critical or a warning, or only what is named. */
  readonly apply: "nothing" | "all" | readonly string[];
  readonly resume: boolean;
}

export interface Prefill {
  readonly recipe: string | null;
  /** `upload:ID`, `s3://…` or `hf://…`. */
  readonly dataset: string | null;
  readonly retry: Retry | null;
}

export function readPrefill(search: string): Prefill {
  const given = new URLSearchParams(search);
  const job = text(given.get("retry"));
  const dataset = text(given.get("dataset"));
  return {
    recipe: text(given.get("recipe")),
    dataset: dataset !== null && /^[0-9a-f]{32}$/.test(dataset) ? `upload:${dataset}` : dataset,
    retry: job === null ? null : { job, apply: applied(text(given.get("apply"))), resume: isOn(given.get("resume")) },
  };
}

/** Of the form's own address: on the way to another view, which is loaded first, the form is still open. */
export function usePrefill(): Prefill {
  const search = useLocation({ select: ({ pathname, searchStr }) => (pathname === "/new" ? searchStr : null) });
  const last = useRef("");
  if (search !== null) last.current = search;
  const own = last.current;
  return useMemo(() => readPrefill(own), [own]);
}

/** The router writes a text that looks like a number in quotes. */
function text(value: string | null): string | null {
  if (value === null || value === "") return null;
  return value.length > 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

function applied(value: string | null): Retry["apply"] {
  if (value === null) return "nothing";
  if (value === "all") return "all";
  return value.split(",").filter((name) => name !== "");
}

function isOn(value: string | null): boolean {
  return value === "1" || value === "true";
}
