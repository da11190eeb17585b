import { DropdownMenu } from "radix-ui";
import type { ReactElement } from "react";
import type { MenuEntry } from "~/design/Menu";
import styles from "./OpenMenu.module.css";

/** The menu of `Menu.tsx` once it was opened. */
export default function OpenMenu(props: { readonly trigger: ReactElement; readonly entries: readonly MenuEntry[] }) {
  return (
    <DropdownMenu.Root defaultOpen modal={false}>
      <DropdownMenu.Trigger asChild>{props.trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className={styles.menu} align="end" sideOffset={4} collisionPadding={8}>
          {props.entries.map((entry, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the entries of a menu do not move
            <Entry key={place} entry={entry} />
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

function Entry({ entry }: { readonly entry: MenuEntry }) {
  if (entry === "line") return <DropdownMenu.Separator className={styles.line} />;
  if ("checked" in entry) {
    return (
      <DropdownMenu.CheckboxItem
        className={styles.item}
        checked={entry.checked}
        onCheckedChange={entry.onChange}
        onSelect={(event) => event.preventDefault()}
      >
        <span className={styles.check} aria-hidden>
          {entry.checked ? "✓" : ""}
        </span>
        {entry.label}
      </DropdownMenu.CheckboxItem>
    );
  }
  return (
    <DropdownMenu.Item
      className={entry.danger ? styles.danger : styles.item}
      disabled={entry.disabled}
      onSelect={entry.onSelect}
    >
      {entry.label}
    </DropdownMenu.Item>
  );
}
