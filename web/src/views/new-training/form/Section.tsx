import { type ReactNode, useId } from "react";
import styles from "./Section.module.css";

/** A part of the form under its heading. */
export function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id} className={styles.section}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

/** What is rarely needed: one line until it is opened. It is open where something in it is wrong. */
export function Folded(props: {
  readonly title: string;
  readonly note?: string;
  readonly isOpen?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <details className={styles.folded} open={props.isOpen || undefined}>
      <summary>
        {props.title}
        {props.note ? <span className="quiet"> {props.note}</span> : null}
      </summary>
      <div className={styles.inside}>{props.children}</div>
    </details>
  );
}

/** Controls side by side where there is room. */
export function Grid({ children }: { readonly children: ReactNode }) {
  return <div className={styles.grid}>{children}</div>;
}
