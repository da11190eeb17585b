/** What was typed so far. It survives a reload: a lost connection must not lose a form. */
import { useCallback, useEffect, useState } from "react";

export interface Draft {
  readonly recipe: string;
  /** `upload:ID`, `s3://…` or `hf://…`; empty: none yet. */
  readonly dataset: string;
  readonly name: string;
  readonly trigger: string;
  /** What was typed, by name; a parameter that is not here has its default. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly provider: string;
  readonly maxPrice: string;
  readonly gpus: string;
  readonly vramGib: string;
  readonly diskGib: string;
  readonly maxHours: string;
  readonly maxSpend: string;
  readonly monitoring: Readonly<Record<string, string>>;
}

export const EMPTY: Draft = {
  recipe: "",
  dataset: "",
  name: "",
  trigger: "",
  parameters: {},
  provider: "",
  maxPrice: "",
  gpus: "",
  vramGib: "",
  diskGib: "",
  maxHours: "",
  maxSpend: "",
  monitoring: {},
};

export type Change = (changes: Partial<Draft>) => void;

const PREFIX = "stationmaster.new";

/** `place` tells drafts apart; `first` is what a form begins with, `asked` goes before what was typed earlier. */
export function useDraft(place: string, first: Draft, asked: Partial<Draft> = {}) {
  const key = `${PREFIX}.${place}`;
  const [draft, setDraft] = useState<Draft>(() => ({ ...first, ...read(key), ...asked }));
  const change = useCallback<Change>((changes) => setDraft((now) => ({ ...now, ...changes })), []);
  useEffect(() => write(key, draft), [key, draft]);
  const forget = useCallback(() => sessionStorage.removeItem(key), [key]);
  return { draft, change, forget };
}

function read(key: string): Partial<Draft> {
  const kept = sessionStorage.getItem(key);
  if (kept === null) return {};
  try {
    return JSON.parse(kept) as Partial<Draft>;
  } catch {
    return {}; // of a version that wrote it otherwise
  }
}

function write(key: string, draft: Draft): void {
  sessionStorage.setItem(key, JSON.stringify(draft));
}
