import { seriesToken } from "~/charts/colours";
import styles from "./Compare.module.css";

/** The letter of a run on its colour: the same in tables, charts and samples. */
export function RunMark({ slot, letter }: { readonly slot: number; readonly letter: string }) {
  return (
    <span className={styles.mark} style={{ borderColor: seriesToken(slot) }}>
      {letter}
    </span>
  );
}
