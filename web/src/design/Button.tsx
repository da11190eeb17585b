import type { ButtonHTMLAttributes, ReactNode } from "react";
import styles from "./Button.module.css";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `main`: the one thing to do here; `danger`: ends or deletes something; `quiet`: without a border. */
  readonly kind?: "main" | "plain" | "danger" | "quiet";
  readonly busy?: boolean;
  readonly children: ReactNode;
}

/** For links that look like buttons: they lead somewhere or download something. */
export function buttonClass(kind: "main" | "plain" | "quiet" = "plain"): string {
  return `${styles.button} ${styles[kind]} ${styles.link}`;
}

export function Button({ kind = "plain", busy = false, disabled, children, className, ...rest }: Props) {
  const classes = [styles.button, styles[kind], className].filter(Boolean).join(" ");
  return (
    <button type="button" {...rest} className={classes} disabled={disabled || busy} aria-busy={busy || undefined}>
      {children}
    </button>
  );
}
