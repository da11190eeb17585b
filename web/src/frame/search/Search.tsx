/** The search over everything: a combobox whose list changes with every letter. */
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { Dialog } from "~/design/Dialog";
import { counted } from "~/text/format";
import { type Entry, found } from "./entries";
import styles from "./Search.module.css";
import { useEntries } from "./useEntries";

interface Props {
  readonly onClose: () => void;
  readonly onKeys: () => void;
}

export default function Search({ onClose, onKeys }: Props) {
  const { entries, isFetching } = useEntries(onKeys);
  const [query, setQuery] = useState("");
  const [place, setPlace] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => found(entries, query), [entries, query]);
  const chosen = shown[Math.min(place, shown.length - 1)];

  // biome-ignore lint/correctness/useExhaustiveDependencies: the entry that is marked has to be in sight
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [chosen?.id]);

  function go(entry: Entry | undefined): void {
    if (entry === undefined) return;
    onClose();
    entry.run();
  }

  function onKeyDown(event: KeyboardEvent<HTMLInputElement>): void {
    const last = shown.length - 1;
    const current = Math.min(place, last);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: current === last ? 0 : current + 1,
      ArrowUp: current <= 0 ? last : current - 1,
      PageDown: Math.min(last, current + 6),
      PageUp: Math.max(0, current - 6),
    };
    const next = moves[event.key];
    if (next !== undefined) {
      event.preventDefault();
      setPlace(next);
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) {
      event.preventDefault();
      go(chosen);
    }
  }

  return (
    <Dialog open onClose={onClose} title="Search">
      <input
        className={styles.input}
        role="combobox"
        aria-label="Search trainings, models, recipes, settings and actions"
        aria-expanded={shown.length > 0}
        aria-controls="search-results"
        aria-activedescendant={chosen ? `search-${chosen.id}` : undefined}
        aria-autocomplete="list"
        autoComplete="off"
        spellCheck={false}
        maxLength={200}
        placeholder="Training, model, recipe, setting or action"
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setPlace(0);
        }}
        onKeyDown={onKeyDown}
      />
      <Results list={list} shown={shown} chosen={chosen} onChoose={go} />
      <p className="visually-hidden" role="status">
        {isFetching ? "Loading" : counted(shown.length, "result")}
      </p>
      {shown.length === 0 ? <p className="quiet">{isFetching ? "Loading…" : `Nothing matches “${query}”.`}</p> : null}
      <p className={styles.foot}>↑ ↓ to choose · Enter to open · Esc to close</p>
    </Dialog>
  );
}

interface ResultsProps {
  readonly list: React.Ref<HTMLDivElement>;
  readonly shown: readonly Entry[];
  readonly chosen: Entry | undefined;
  readonly onChoose: (entry: Entry) => void;
}

function Results({ list, shown, chosen, onChoose }: ResultsProps) {
  const groups = [...new Set(shown.map((entry) => entry.group))];
  return (
    <div ref={list} id="search-results" role="listbox" aria-label="Results" className={styles.list}>
      {groups.map((group) => (
        // biome-ignore lint/a11y/useSemanticElements: a group of options of a listbox; a fieldset is for controls
        <div key={group} role="group" aria-label={group}>
          <p className={styles.group} aria-hidden>
            {group}
          </p>
          {shown
            .filter((entry) => entry.group === group)
            .map((entry) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and the keys
              <div
                key={entry.id}
                id={`search-${entry.id}`}
                role="option"
                tabIndex={-1}
                aria-selected={entry === chosen}
                className={styles.option}
                onClick={() => onChoose(entry)}
              >
                <span className={styles.label}>{entry.label}</span>
                {entry.detail ? <span className={styles.detail}>{entry.detail}</span> : null}
              </div>
            ))}
        </div>
      ))}
    </div>
  );
}
