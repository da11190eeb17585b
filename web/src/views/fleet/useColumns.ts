/** Which columns are shown: by the width of the window, and as the user chose in this browser. */
import { useCallback, useState, useSyncExternalStore } from "react";
import { COLUMNS, type Column } from "./columns";

const REMEMBERED = "fleet.columns";

type Choice = Readonly<Record<string, boolean>>;

export interface ChosenColumns {
  readonly columns: readonly Column[];
  readonly isShown: (column: Column) => boolean;
  readonly choose: (column: Column, isShown: boolean) => void;
}

export function useColumns(): ChosenColumns {
  const width = useWindowWidth();
  const [choice, setChoice] = useState(remembered);
  const isShown = (column: Column) => choice[column.id] ?? width >= column.from;
  const choose = useCallback((column: Column, shown: boolean) => {
    setChoice((before) => {
      const next = { ...before, [column.id]: shown };
      localStorage.setItem(REMEMBERED, JSON.stringify(next));
      return next;
    });
  }, []);
  return { columns: COLUMNS.filter(isShown), isShown, choose };
}

function remembered(): Choice {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(REMEMBERED) ?? "{}");
    return typeof found === "object" && found !== null ? (found as Choice) : {};
  } catch {
    return {}; // not written by this page: the columns of the width are as good
  }
}

function onResize(listener: () => void): () => void {
  window.addEventListener("resize", listener);
  return () => window.removeEventListener("resize", listener);
}

export function useWindowWidth(): number {
  return useSyncExternalStore(onResize, () => window.innerWidth);
}
