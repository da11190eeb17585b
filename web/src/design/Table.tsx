import type { ReactNode } from "react";
import styles from "./Table.module.css";

interface Props {
  /** What the rows are, for those who do not see the heading above. */
  readonly label: string;
  readonly children: ReactNode;
}

/** A table that scrolls sideways by itself where it is wider than its place; the page never does. */
export function Table({ label, children }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className={styles.scroll} aria-label={label} tabIndex={0}>
      <table className={styles.table}>{children}</table>
    </section>
  );
}
