/** Exponential smoothing that does not depend on how many points the server sent. */

/** Offered spans, in recorded points. */
export const SPANS = [0, 5, 20, 100, 500, 2000] as const;

/** About a fiftieth of the run, of the offered spans; nothing where there is little to smooth. */
export function usualSpan(count: number): number {
  if (count < 40) return 0;
  const wanted = count / 50;
  return SPANS.findLast((span) => span <= wanted) ?? 0;
}

/**
 * The values smoothed over about `span` recorded points.
 *
 * `count` is how many recorded points the given ones stand for: of a long run only the lowest and highest of each pixel
 * come, so a point weighs as much as the part of the axis that it stands for.
 */
export function smoothed(
  x: readonly number[],
  y: readonly (number | null | undefined)[],
  span: number,
  count: number = x.length,
): (number | null | undefined)[] {
  const last = x.length - 1;
  const length = (x[last] ?? 0) - (x[0] ?? 0);
  if (span <= 1 || last < 1 || length <= 0) return [...y];
  const spacing = length / Math.max(count - 1, 1);
  const keepPerPoint = 1 - 2 / (span + 1);
  const made: (number | null | undefined)[] = new Array(y.length);
  let mean: number | null = null;
  let weight = 0; // of all values so far: makes the beginning right, where there is little to average
  let before = 0;
  // Most points follow each other at the same distance: a power for each of them would take longer than all the rest.
  let knownDistance = 1;
  let keep = keepPerPoint;
  for (let place = 0; place < y.length; place += 1) {
    const value = y[place];
    if (value === null || value === undefined) {
      made[place] = value;
      continue;
    }
    const at = x[place] ?? 0;
    const distance: number = mean === null ? 1 : (at - before) / spacing || 1;
    if (distance !== knownDistance) {
      knownDistance = distance;
      keep = keepPerPoint ** distance;
    }
    mean = (mean ?? 0) * keep + value * (1 - keep);
    weight = weight * keep + (1 - keep);
    made[place] = mean / weight;
    before = at;
  }
  return made;
}
