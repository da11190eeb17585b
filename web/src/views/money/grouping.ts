/** What trainings cost, summed up by what they have in common. */
export type By = "training" | "recipe" | "provider" | "user";

export interface CostRow {
  readonly id: string;
  readonly name: string;
  readonly owner: string | null;
  readonly recipe: string;
  readonly provider: string;
  readonly shown: string;
  readonly ended_at: string | null;
  readonly cost_usd: number;
  readonly quoted_usd: number;
}

export interface CostGroup {
  readonly key: string;
  readonly name: string;
  readonly count: number;
  readonly costUsd: number;
  /** Of the trainings that have ended: what they cost, and what had been quoted for them. */
  readonly endedUsd: number;
  readonly quotedUsd: number;
  /** The only training of the group, where groups are trainings. */
  readonly job: CostRow | null;
}

/** A training without an owner belongs to the single user of the settings. */
const SINGLE_USER = "me";

function keyOf(row: CostRow, by: By): string {
  if (by === "training") return row.id;
  if (by === "recipe") return row.recipe;
  return by === "provider" ? row.provider : (row.owner ?? SINGLE_USER);
}

/** The groups, the dearest first. */
export function grouped(rows: readonly CostRow[], by: By): readonly CostGroup[] {
  const groups = new Map<string, CostGroup>();
  for (const row of rows) {
    const key = keyOf(row, by);
    const group = groups.get(key);
    const isCounted = row.ended_at !== null && row.quoted_usd > 0;
    groups.set(key, {
      key,
      name: by === "training" ? row.name : key,
      count: (group?.count ?? 0) + 1,
      costUsd: (group?.costUsd ?? 0) + row.cost_usd,
      endedUsd: (group?.endedUsd ?? 0) + (isCounted ? row.cost_usd : 0),
      quotedUsd: (group?.quotedUsd ?? 0) + (isCounted ? row.quoted_usd : 0),
      job: by === "training" ? row : null,
    });
  }
  return [...groups.values()].sort((one, other) => other.costUsd - one.costUsd || (one.name < other.name ? -1 : 1));
}

/** By how much the actual cost differs from the quote: `+12 %`; null without a quote. */
export function difference(actualUsd: number, quotedUsd: number): string | null {
  if (quotedUsd <= 0) return null;
  const percent = Math.round((actualUsd / quotedUsd - 1) * 100);
  return percent === 0 ? "as quoted" : `${percent > 0 ? "+" : "−"}${Math.abs(percent)} %`;
}
