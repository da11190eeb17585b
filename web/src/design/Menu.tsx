/** A menu under a button. What draws it is fetched on hover or focus: the first view must stay small. */
import { lazy, type ReactElement, type ReactNode, Suspense, useState } from "react";

export type MenuEntry =
  | { readonly label: ReactNode; readonly onSelect: () => void; readonly danger?: boolean; readonly disabled?: boolean }
  /** A choice that can be on or off; the menu stays open. */
  | { readonly label: ReactNode; readonly checked: boolean; readonly onChange: (checked: boolean) => void }
  | "line";

interface Props {
  /** A Button. */
  readonly trigger: ReactElement;
  readonly entries: readonly MenuEntry[];
}

const fetchMenu = () => import("~/design/OpenMenu");
const OpenMenu = lazy(fetchMenu);

export function Menu({ trigger, entries }: Props) {
  const [wasOpened, setWasOpened] = useState(false);
  const preload = () => void fetchMenu();
  const closed = (
    // The button inside has the role, the name and the focus; this only notices hover and focus.
    <span role="none" onPointerEnter={preload} onFocus={preload} onClick={() => setWasOpened(true)} onKeyDown={preload}>
      {trigger}
    </span>
  );
  if (!wasOpened) return closed;
  return (
    <Suspense fallback={closed}>
      <OpenMenu trigger={trigger} entries={entries} />
    </Suspense>
  );
}
