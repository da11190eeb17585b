/** Dialogs. What draws them is fetched when the first one opens: the first view must stay small. */
import { lazy, type ReactNode, Suspense } from "react";
import { Button } from "~/design/Button";
import { ProblemNote } from "~/design/ProblemNote";
import styles from "./Dialog.module.css";

const OpenDialog = lazy(() => import("~/design/OpenDialog"));

interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly children: ReactNode;
  readonly wide?: boolean;
}

export function Dialog({ open, ...rest }: DialogProps) {
  if (!open) return null;
  return (
    <Suspense fallback={null}>
      <OpenDialog {...rest} />
    </Suspense>
  );
}

interface ConfirmProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  /** What happens, and what is lost: never only "are you sure?". */
  readonly children: ReactNode;
  /** What the button does, as a verb. */
  readonly action: string;
  readonly onConfirm: () => void;
  readonly danger?: boolean;
  readonly busy?: boolean;
  readonly problem?: unknown;
}

/** Asks before money moves or something is lost. */
export function Confirm({ open, onClose, title, children, action, onConfirm, danger, busy, problem }: ConfirmProps) {
  return (
    <Dialog open={open} onClose={onClose} title={title}>
      <div className={styles.body}>{children}</div>
      {problem ? <ProblemNote problem={problem} /> : null}
      <div className={styles.buttons}>
        <Button onClick={onClose}>Leave it</Button>
        <Button kind={danger ? "danger" : "main"} busy={busy} onClick={onConfirm}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
