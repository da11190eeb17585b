import { percent as percentText } from "~/text/format";
import styles from "./Progress.module.css";

/** A bar with its number beside it; without a number the bar is empty and says so. */
export function Progress({ percent, label }: { readonly percent: number | null | undefined; readonly label: string }) {
  const known = percent ?? null;
  return (
    <span className={styles.progress}>
      <span
        className={styles.bar}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={known === null ? undefined : Math.round(known)}
      >
        <span className={styles.done} style={{ width: `${Math.min(100, Math.max(0, known ?? 0))}%` }} />
      </span>
      <span className={styles.number}>{percentText(known)}</span>
    </span>
  );
}
