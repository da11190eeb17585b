/** One cursor for all charts of a group: where the pointer is in one, the others show it. */
type Listener = (x: number | null, from: symbol) => void;

const groups = new Map<string, Set<Listener>>();

export function onCursor(group: string, listener: Listener): () => void {
  const listeners = groups.get(group) ?? new Set();
  groups.set(group, listeners);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) groups.delete(group);
  };
}

/** `x` is a place on the axis that the charts of the group share; null: the pointer left. */
export function moveCursor(group: string, x: number | null, from: symbol): void {
  for (const listener of groups.get(group) ?? []) listener(x, from);
}
