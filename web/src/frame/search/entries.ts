/** What the search finds, and how well a text matches what was typed. */

export interface Entry {
  readonly id: string;
  /** `Trainings`, `Models`, `Actions`: entries are shown by group. */
  readonly group: string;
  readonly label: string;
  /** Beside the label: a recipe, a state. */
  readonly detail?: string;
  /** Other words that find it. */
  readonly words?: string;
  readonly run: () => void;
}

/**
 * How well `text` matches; null: not at all. Every word must occur; earlier and at the beginning of a word is better.
 */
export function match(text: string, query: string): number | null {
  const inside = text.toLowerCase();
  let score = 0;
  for (const word of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const at = inside.indexOf(word);
    if (at < 0) return null;
    const isBeginning = at === 0 || !/[\p{L}\p{N}]/u.test(inside[at - 1] ?? "");
    score += (isBeginning ? 100 : 0) + (at === 0 ? 100 : 0) - Math.min(at, 50);
  }
  return score;
}

const PER_GROUP = 6;

/** The best entries, in the order of their groups; with an empty query the first ones of every group. */
export function found(entries: readonly Entry[], query: string): readonly Entry[] {
  const groups = new Map<string, { entry: Entry; score: number }[]>();
  for (const entry of entries) {
    const byLabel = match(entry.label, query);
    const score = byLabel ?? match(`${entry.label} ${entry.detail ?? ""} ${entry.words ?? ""}`, query);
    if (score === null) continue;
    const group = groups.get(entry.group) ?? [];
    groups.set(entry.group, group);
    group.push({ entry, score: score + (byLabel === null ? 0 : 1_000) });
  }
  return [...groups.values()].flatMap((group) =>
    group
      .sort((one, other) => other.score - one.score)
      .slice(0, PER_GROUP)
      .map(({ entry }) => entry),
  );
}
