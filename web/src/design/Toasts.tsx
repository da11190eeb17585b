/** Short notices about what was just done, with an undo where there is one. */
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { Button } from "~/design/Button";
import styles from "./Toasts.module.css";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly undo?: () => void;
}

type Say = (text: string, undo?: () => void) => void;

const Context = createContext<Say>(() => undefined);
const SHOWN_MS = 6_000;

export function ToastProvider({ children }: { readonly children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const drop = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const say = useMemo<Say>(() => {
    let next = 0;
    return (text, undo) => {
      const id = next++;
      setToasts((all) => [...all, { id, text, undo }]);
      window.setTimeout(() => drop(id), SHOWN_MS);
    };
  }, [drop]);
  return (
    <Context.Provider value={say}>
      {children}
      <div className={styles.toasts} role="status">
        {toasts.map((toast) => (
          <div key={toast.id} className={styles.toast}>
            <span>{toast.text}</span>
            {toast.undo ? (
              <Button
                onClick={() => {
                  toast.undo?.();
                  drop(toast.id);
                }}
              >
                Undo
              </Button>
            ) : null}
          </div>
        ))}
      </div>
    </Context.Provider>
  );
}

/** `say("Stopping cats-v3")`. */
export function useSay(): Say {
  return useContext(Context);
}
