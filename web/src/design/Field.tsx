import { type ReactNode, useId } from "react";
import styles from "./Field.module.css";

interface Props {
  readonly label: ReactNode;
  readonly help?: ReactNode;
  readonly problem?: string | null;
  /** Gets the ids that tie the control to its label and texts. */
  readonly children: (control: {
    id: string;
    "aria-describedby": string;
    "aria-invalid": boolean | undefined;
  }) => ReactNode;
}

/** A control of a form with its label, what it means, and what is wrong with it. */
export function Field({ label, help, problem, children }: Props) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": `${id}-help`, "aria-invalid": problem ? true : undefined })}
      <div id={`${id}-help`}>
        {problem ? <p className={styles.problem}>✕ {problem}</p> : null}
        {help ? <p className={styles.help}>{help}</p> : null}
      </div>
    </div>
  );
}
