import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import styles from "./Tabs.module.css";

export interface Tab<Name extends string> {
  readonly name: Name;
  readonly label: ReactNode;
  readonly content: ReactNode;
}

interface Props<Name extends string> {
  readonly tabs: readonly Tab<Name>[];
  readonly chosen: Name;
  readonly onChoose: (name: Name) => void;
  readonly label: string;
}

/** Only the chosen tab's content exists, so a log that is not shown costs nothing. */
export function Tabs<Name extends string>({ tabs, chosen, onChoose, label }: Props<Name>) {
  return (
    <Radix.Root value={chosen} onValueChange={(name) => onChoose(name as Name)}>
      <Radix.List className={styles.list} aria-label={label}>
        {tabs.map((tab) => (
          <Radix.Trigger key={tab.name} value={tab.name} className={styles.tab}>
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.name} value={tab.name} className={styles.content}>
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
