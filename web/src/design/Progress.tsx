import { percent as percentText } from "~/text/format";
import styles from "./Progress.module.css";

interface Props {
  readonly percent: number | null | undefined;
  readonly label: string;
  /** Without the number, where it stands beside the bar already. */
  readonly bare?: boolean;
  /** It no longer grows. */
  readonly isOver?: boolean;
}

/** A bar with its number beside it; without a number the bar is empty and says so. */
export function Progress({ percent, label, bare = false, isOver = false }: Props) {
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
        <span
          className={isOver ? styles.over : styles.done}
          style={{ width: `${Math.min(100, Math.max(0, known ?? 0))}%` }}
        />
      </span>
      {bare ? null : <span className={styles.number}>{percentText(known)}</span>}
    </span>
  );
}
