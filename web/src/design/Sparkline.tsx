import { finite } from "~/text/format";
import styles from "./Sparkline.module.css";

const [WIDTH, HEIGHT] = [88, 20];

/** A line in the size of a word. The numbers that matter stand beside it, so it is only for the eye. */
export function Sparkline({ values }: { readonly values: readonly (number | string | null)[] }) {
  const known = values.map((value) => finite(value as number)).filter((value) => value !== null);
  if (known.length < 2) return <span className={styles.none} />;
  return (
    <svg className={styles.line} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={pathOf(known, WIDTH, HEIGHT)} />
    </svg>
  );
}

/** The values as equally spaced points of a path in a box, the lowest at its bottom. */
export function pathOf(values: readonly number[], width: number, height: number): string {
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const across = width / Math.max(1, values.length - 1);
  const points = values.map((value, place) => {
    const down = height - 1 - ((value - low) / range) * (height - 2);
    return `${(place * across).toFixed(1)} ${down.toFixed(1)}`;
  });
  return `M${points.join("L")}`;
}
