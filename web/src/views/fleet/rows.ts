/** Which rows are shown, in which order and in which groups. Pure. */
import type { OverviewRow } from "~/api/documents";
import { finite } from "~/text/format";
import { lookOf, shownOr } from "~/text/states";

export const FACETS = ["state", "recipe", "gpu", "owner", "provider"] as const;
export type Facet = (typeof FACETS)[number];

export const FACET_LABELS: Readonly<Record<Facet, string>> = {
  state: "State",
  recipe: "Recipe",
  gpu: "GPU",
  owner: "Owner",
  provider: "Provider",
};

/** What the filter of states offers besides the states themselves. */
export const NEEDS_YOU = "Needs you";

export type Chosen = Readonly<Partial<Record<Facet, string | null>>>;

export function shownOf(row: OverviewRow): string {
  return shownOr(row.shown, row.needs?.kind === "stall");
}

export function facetOf(row: OverviewRow, facet: Facet): string {
  if (facet === "state") return lookOf(shownOf(row)).word;
  if (facet === "owner") return row.owner ?? "me";
  if (facet === "gpu") return row.gpu ?? "none yet";
  return row[facet];
}

/** The values of a facet among the rows, in alphabetical order. */
export function choicesOf(rows: readonly OverviewRow[], facet: Facet): readonly string[] {
  const values = [...new Set(rows.map((row) => facetOf(row, facet)))].sort();
  return facet === "state" && rows.some((row) => row.needs) ? [NEEDS_YOU, ...values] : values;
}

export function filtered(rows: readonly OverviewRow[], text: string, chosen: Chosen): readonly OverviewRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => isChosen(row, chosen) && words.every((word) => textOf(row).includes(word)));
}

function isChosen(row: OverviewRow, chosen: Chosen): boolean {
  return FACETS.every((facet) => {
    const wanted = chosen[facet];
    if (!wanted) return true;
    return facet === "state" && wanted === NEEDS_YOU ? Boolean(row.needs) : facetOf(row, facet) === wanted;
  });
}

function textOf(row: OverviewRow): string {
  return [row.name, row.id, ...FACETS.map((facet) => facetOf(row, facet))].join(" ").toLowerCase();
}

type Sortable = number | string | null;

const SORT_KEYS: Readonly<Record<string, (row: OverviewRow) => Sortable>> = {
  state: (row) => lookOf(shownOf(row)).word,
  name: (row) => row.name.toLowerCase(),
  progress: (row) => row.percent ?? null,
  step: (row) => row.step ?? null,
  loss: (row) => finite(row.loss),
  gpu: (row) => row.gpu ?? null,
  use: (row) => row.gpu_percent ?? null,
  memory: (row) => row.gpu_memory_used_gib ?? null,
  speed: (row) => finite(row.steps_per_second),
  eta: (row) => finite(row.eta_seconds),
  price: (row) => row.price_per_hour_usd ?? null,
  cost: (row) => row.cost_usd,
  health: (row) => row.health ?? null,
  recipe: (row) => row.recipe,
  owner: (row) => row.owner ?? "me",
  provider: (row) => row.provider,
  created: (row) => row.created_at,
};

export function isSortable(column: string): boolean {
  return column in SORT_KEYS;
}

/** By a column (`cost`) or against it (`-cost`), unknown values last; otherwise those that need a person first. */
export function sorted(rows: readonly OverviewRow[], sort: string | null): readonly OverviewRow[] {
  const key = SORT_KEYS[sort?.replace(/^-/, "") ?? ""];
  if (key === undefined) return [...rows].sort((one, other) => urgency(one) - urgency(other));
  const direction = sort?.startsWith("-") ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return a === b ? 0 : a < b ? -direction : direction;
  });
}

/** The server lists those that have not ended first, the newest first; sorting keeps that order among equals. */
function urgency(row: OverviewRow): number {
  if (row.ended_at) return 2;
  return row.needs ? 0 : 1;
}

export interface Group {
  readonly name: string;
  readonly rows: readonly OverviewRow[];
}

/** The rows in groups, those of the first row's group first; one group without a name if there are none. */
export function grouped(rows: readonly OverviewRow[], facet: Facet | null): readonly Group[] {
  if (facet === null) return [{ name: "", rows }];
  const groups = new Map<string, OverviewRow[]>();
  for (const row of rows) {
    const name = facetOf(row, facet);
    const known = groups.get(name);
    if (known) known.push(row);
    else groups.set(name, [row]);
  }
  return [...groups].map(([name, members]) => ({ name, rows: members }));
}

export function isFacet(text: string | null): text is Facet {
  return (FACETS as readonly string[]).includes(text ?? "");
}
