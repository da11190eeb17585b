/**
 * The keys of what is shown. A view registers its keys while it is on the page; `?` lists all of them.
 *
 * Keys never act during typing in a field, nor behind an open dialog or menu.
 */
import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Key {
  /** One key as the browser names it (`j`, `Enter`, `/`), two in a row (`g t`), or with ⌘ or Ctrl (`Mod+k`). */
  readonly keys: string;
  /** What it does, for the list: `Open the training`. */
  readonly does: string;
  readonly run: () => void;
}

export interface KeyGroup {
  /** `On every page`, `Trainings`. */
  readonly title: string;
  readonly keys: readonly Key[];
}

const SEQUENCE_MS = 1_200;

let groups: readonly KeyGroup[] = [];
let before: { readonly key: string; readonly at: number } | null = null;
const listeners = new Set<() => void>();

function change(next: readonly KeyGroup[]): void {
  const hadNone = groups.length === 0;
  groups = next;
  if (hadNone && groups.length > 0) window.addEventListener("keydown", onKey);
  if (!hadNone && groups.length === 0) window.removeEventListener("keydown", onKey);
  for (const listener of listeners) listener();
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || isModifier(event.key)) return;
  const key = nameOf(event);
  const isCommand = key.startsWith("Mod+");
  if (!isCommand && (isBusy(event.target, event.key) || isBehindOverlay())) return;
  const now = event.timeStamp;
  const pair = before !== null && now - before.at < SEQUENCE_MS ? `${before.key} ${key}` : null;
  const found = (pair === null ? undefined : find(pair)) ?? find(key);
  before = found === undefined ? { key, at: now } : null;
  if (found === undefined) return;
  event.preventDefault();
  found.run();
}

/** The newest group is asked first: what a view does with a key goes before what the frame does. */
function find(keys: string): Key | undefined {
  for (let place = groups.length - 1; place >= 0; place -= 1) {
    const found = groups[place]?.keys.find((each) => each.keys === keys);
    if (found !== undefined) return found;
  }
  return undefined;
}

function nameOf(event: KeyboardEvent): string {
  const name = event.key === " " ? "Space" : event.key;
  return event.metaKey || event.ctrlKey ? `Mod+${name.toLowerCase()}` : event.altKey ? `Alt+${name}` : name;
}

function isModifier(key: string): boolean {
  return key === "Shift" || key === "Control" || key === "Meta" || key === "Alt" || key === "CapsLock";
}

const FIELDS = "input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select";
const OVERLAYS = "[role=dialog], [role=alertdialog], [role=menu], [role=listbox]";
const PRESSED_BY_KEYS = "a[href], button, summary, [role=tab], [role=slider], [role=option], input";

/** Whether the key already means something where the focus is: text in a field, a press of a button. */
function isBusy(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest(FIELDS) !== null) return true;
  return (key === "Enter" || key === " ") && target.closest(PRESSED_BY_KEYS) !== null;
}

function isBehindOverlay(): boolean {
  return document.querySelector(OVERLAYS) !== null;
}

/** Registers the keys of what is shown, as long as it is. `keys` may change with every drawing. */
export function useKeys(title: string, keys: readonly Key[]): void {
  const newest = useRef(keys);
  newest.current = keys;
  const shape = keys.map((each) => `${each.keys}\n${each.does}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what the list shows needs a new registration
  useEffect(() => {
    const group: KeyGroup = {
      title,
      keys: newest.current.map(({ keys, does }) => ({
        keys,
        does,
        run: () => newest.current.find((each) => each.keys === keys)?.run(),
      })),
    };
    change([...groups, group]);
    return () => change(groups.filter((each) => each !== group));
  }, [title, shape]);
}

/** All keys that work now. */
export function useKeyGroups(): readonly KeyGroup[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => groups,
  );
}

const IS_APPLE = /Mac|iP(hone|ad|od)/.test(navigator.platform);
const SHOWN: Readonly<Record<string, string>> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
};

/** The caps to draw for a key: `["⌘", "K"]`, `["g", "t"]`. */
export function capsOf(keys: string): readonly string[] {
  return keys.split(" ").flatMap((each) => {
    if (!each.startsWith("Mod+")) return [SHOWN[each] ?? each];
    return [IS_APPLE ? "⌘" : "Ctrl", each.slice("Mod+".length).toUpperCase()];
  });
}
