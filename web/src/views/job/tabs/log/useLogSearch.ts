import { useEffect, useMemo, useReducer } from "react";
import type { LogBook } from "./LogBook";
import { LogSearch } from "./search";

/** The search for a text, which goes on by itself while the log grows. */
export function useLogSearch(book: LogBook, wanted: string, version: number): LogSearch {
  const search = useMemo(() => new LogSearch(wanted), [wanted]);
  const [, redraw] = useReducer((count: number) => count + 1, 0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version of the book has lines to look at
  useEffect(() => {
    if (wanted === "") return;
    let timer: number | undefined;
    const goOn = () => {
      const isDone = search.goOn(book);
      redraw();
      if (!isDone) timer = window.setTimeout(goOn);
    };
    goOn();
    return () => window.clearTimeout(timer);
  }, [search, book, version, wanted]);
  return search;
}
