import type { OverviewRow } from "~/api/documents";
import { Button } from "~/design/Button";
import { Menu } from "~/design/Menu";
import { COLUMNS } from "./columns";
import styles from "./Filters.module.css";
import { choicesOf, FACET_LABELS, FACETS, type Facet } from "./rows";
import type { ChosenColumns } from "./useColumns";
import type { FleetAddress } from "./useFleetAddress";

interface Props {
  readonly rows: readonly OverviewRow[];
  readonly address: FleetAddress;
  readonly columns: ChosenColumns;
  readonly isNarrow: boolean;
}

/** Which trainings are shown, in which groups and with which columns. */
export function Filters({ rows, address, columns, isNarrow }: Props) {
  const active = FACETS.filter((facet) => address.chosen[facet]).length;
  return (
    <search className={styles.filters}>
      <input
        type="search"
        placeholder="Filter…"
        aria-label="Filter trainings"
        value={address.text}
        onChange={(event) => address.change({ q: event.target.value || null })}
      />
      {isNarrow ? (
        <details className={styles.folded} open={active > 0 || undefined}>
          <summary>Filters and groups{active > 0 ? ` (${active})` : ""}</summary>
          <div className={styles.filters}>
            <Choices rows={rows} address={address} />
          </div>
        </details>
      ) : (
        <Choices rows={rows} address={address} />
      )}
      {isNarrow ? null : (
        <span className={styles.columns}>
          <Menu
            trigger={<Button kind="quiet">Columns ▾</Button>}
            entries={COLUMNS.map((column) => ({
              label: column.label,
              checked: columns.isShown(column),
              onChange: (shown) => columns.choose(column, shown),
            }))}
          />
        </span>
      )}
    </search>
  );
}

function Choices({ rows, address }: Pick<Props, "rows" | "address">) {
  return (
    <>
      {FACETS.map((facet) => {
        const choices = choicesOf(rows, facet);
        const chosen = address.chosen[facet] ?? "";
        if (choices.length < 2 && !chosen) return null;
        return (
          <Choice
            key={facet}
            label={FACET_LABELS[facet]}
            none={`any ${facet === "gpu" ? "GPU" : facet}`}
            choices={chosen && !choices.includes(chosen) ? [chosen, ...choices] : choices}
            chosen={chosen}
            onChoose={(value) => address.change({ [facet]: value })}
          />
        );
      })}
      <Choice
        label="Groups"
        none="no groups"
        choices={FACETS}
        name={(facet) => `by ${FACET_LABELS[facet as Facet]}`}
        chosen={address.group ?? ""}
        onChoose={(value) => address.change({ group: value, closed: null })}
      />
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  /** What no choice means. */
  readonly none: string;
  readonly choices: readonly string[];
  readonly name?: (choice: string) => string;
  readonly chosen: string;
  readonly onChoose: (value: string | null) => void;
}

function Choice({ label, none, choices, name = (choice) => choice, chosen, onChoose }: ChoiceProps) {
  return (
    <select
      aria-label={label}
      className={chosen ? styles.active : undefined}
      value={chosen}
      onChange={(event) => onChoose(event.target.value || null)}
    >
      <option value="">{none}</option>
      {choices.map((choice) => (
        <option key={choice} value={choice}>
          {name(choice)}
        </option>
      ))}
    </select>
  );
}
