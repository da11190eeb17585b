import { useSyncExternalStore } from "react";
import { exactly, relative, UNKNOWN } from "~/text/format";

let now = Date.now();
const listeners = new Set<() => void>();
let timer: number | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= window.setInterval(() => {
    now = Date.now();
    for (const one of listeners) one();
  }, 5_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      window.clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time, moved on every five seconds for all components at once. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** "3 min ago", with the exact time on hover. `at` is ISO 8601. */
export function When({ at }: { readonly at: string | null | undefined }) {
  const present = useNow();
  if (!at) return <span>{UNKNOWN}</span>;
  const instant = Date.parse(at);
  return (
    <time dateTime={at} title={exactly(instant)}>
      {relative(instant, Math.max(present, instant <= Date.now() ? instant : 0))}
    </time>
  );
}
