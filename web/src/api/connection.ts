/** Whether the server can be reached and who is signed in, as one small store that the frame shows. */
import { useSyncExternalStore } from "react";

export interface Connection {
  /** `live`: events arrive; `waiting`: nothing has failed yet; `lost`: the server does not answer. */
  readonly state: "waiting" | "live" | "lost";
  /** When the server last answered, in milliseconds since 1970. */
  readonly lastAnswer: number | null;
  readonly isSignedOut: boolean;
}

let current: Connection = { state: "waiting", lastAnswer: null, isSignedOut: false };
const listeners = new Set<() => void>();

function change(next: Partial<Connection>): void {
  current = { ...current, ...next };
  for (const listener of listeners) listener();
}

export const connection = {
  /** A request was answered: whatever the answer was, the server is there. */
  reached(): void {
    change({ lastAnswer: Date.now(), state: current.state === "lost" ? "waiting" : current.state });
  },
  streaming(): void {
    change({ lastAnswer: Date.now(), state: "live" });
  },
  failed(): void {
    if (current.state !== "lost") change({ state: "lost" });
  },
  signedOut(): void {
    if (!current.isSignedOut) change({ isSignedOut: true });
  },
  signedIn(): void {
    change({ isSignedOut: false });
  },
  get(): Connection {
    return current;
  },
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

export function useConnection(): Connection {
  return useSyncExternalStore(connection.subscribe, connection.get);
}
