import type { ReactNode } from "react";
import styles from "./Empty.module.css";

/** Nothing here yet: says why, and what to do. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Holds the place of what is being fetched, so that nothing jumps when it comes. */
export function Loading({ what, height = 160 }: { readonly what: string; readonly height?: number }) {
  return (
    <div className={styles.loading} style={{ height }} role="status">
      <span className="visually-hidden">Loading {what}</span>
    </div>
  );
}
