import { Dialog } from "radix-ui";
import type { ReactNode } from "react";
import styles from "./Dialog.module.css";

interface Props {
  readonly onClose: () => void;
  readonly title: string;
  readonly children: ReactNode;
  readonly wide?: boolean;
}

/** The dialog of `Dialog.tsx` while it is open. */
export default function OpenDialog({ onClose, title, children, wide = false }: Props) {
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className={styles.overlay} />
        <Dialog.Content className={wide ? styles.wide : styles.dialog} aria-describedby={undefined}>
          <Dialog.Title className={styles.title}>{title}</Dialog.Title>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
