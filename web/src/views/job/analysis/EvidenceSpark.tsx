import { figuresOf } from "~/charts/summary";
import styles from "./Analysis.module.css";

interface Props {
  readonly title: string;
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
  /** A value with its unit. */
  readonly format: (value: number) => string;
  /** Drawn as a dashed line. */
  readonly limit?: number | null;
  readonly ends?: readonly [number, number];
}

const [WIDTH, HEIGHT] = [300, 48];

/** A series in the size of a few lines of text, with the limit that it crossed. */
export function EvidenceSpark({ title, x, y, format, limit, ends }: Props) {
  const figures = figuresOf(y);
  if (figures === null || x.length < 2) return null;
  const low = ends?.[0] ?? Math.min(figures.lowest, limit ?? figures.lowest);
  const high = ends?.[1] ?? Math.max(figures.highest, limit ?? figures.highest);
  const first = x[0] ?? 0;
  const length = (x[x.length - 1] ?? 0) - first || 1;
  const across = (at: number) => (((at - first) / length) * WIDTH).toFixed(1);
  const down = (value: number) => (HEIGHT - 1 - ((value - low) / (high - low || 1)) * (HEIGHT - 2)).toFixed(1);
  let isDown = false;
  const path = x
    .map((at, place) => {
      const value = y[place];
      if (value === null || value === undefined) {
        isDown = false;
        return "";
      }
      const command = isDown ? "L" : "M";
      isDown = true;
      return `${command}${across(at)} ${down(value)}`;
    })
    .join("");
  const words = `${title}: first ${format(figures.first)}, last ${format(figures.last)}, lowest ${format(figures.lowest)}, highest ${format(figures.highest)}`;
  return (
    <figure className={styles.spark}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words}>
        {limit === null || limit === undefined ? null : (
          <line className={styles.limit} x1={0} x2={WIDTH} y1={down(limit)} y2={down(limit)} />
        )}
        <path d={path} />
      </svg>
      <figcaption aria-hidden>
        {title} {format(figures.first)} → {format(figures.last)}, highest {format(figures.highest)}
        {limit === null || limit === undefined ? "" : `, limit ${format(limit)}`}
      </figcaption>
    </figure>
  );
}
