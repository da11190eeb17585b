import { lazy, type ReactNode, Suspense, useDeferredValue } from "react";
import { Button } from "~/design/Button";
import { counted, dollars, dollarsPerHour } from "~/text/format";
import type { Column } from "./columns";
import styles from "./Fleet.module.css";
import { FleetItem, FleetRow, type RowProps } from "./FleetRow";
import type { Group } from "./rows";
import { isSortable } from "./rows";
import type { FleetAddress } from "./useFleetAddress";

const VirtualEntries = lazy(() => import("./VirtualEntries"));
const MOST_DRAWN = 200;
const DRAWN_FIRST = 40; // more than a window shows

interface Props extends Omit<RowProps, "row" | "isSelected" | "isCurrent"> {
  readonly groups: readonly Group[];
  readonly address: FleetAddress;
  readonly selected: ReadonlySet<string>;
  readonly current: string | null;
  readonly isNarrow: boolean;
}

type Entry = { readonly key: string; readonly group: Group } | { readonly key: string; readonly row: RowProps["row"] };

export function FleetTable(props: Props) {
  const { groups, address, columns, isNarrow } = props;
  const entries = entriesOf(groups, address.closed);
  // Those below the window follow when it has been painted.
  const count = useDeferredValue(entries.length, DRAWN_FIRST);
  const draw = (entry: Entry) => ("group" in entry ? groupHead(entry.group, props) : oneRow(entry.row, props));
  const Part = isNarrow ? "li" : "tbody";
  const drawn =
    entries.length > MOST_DRAWN ? (
      <Suspense fallback={null}>
        <VirtualEntries
          part={Part}
          keys={entries.map((entry) => entry.key)}
          currentKey={props.current}
          draw={(place) => {
            const entry = entries[place];
            return entry ? draw(entry) : null;
          }}
        />
      </Suspense>
    ) : (
      entries.slice(0, count).map((entry) => <Part key={entry.key}>{draw(entry)}</Part>)
    );
  if (isNarrow) {
    return (
      <ul className={styles.list} aria-label="Trainings">
        {drawn}
      </ul>
    );
  }
  return (
    <div className={styles.scroll}>
      <table className={styles.table} aria-label="Trainings">
        <thead>
          <tr>
            <td className={styles.pick} />
            <Heading column={{ id: "name", label: "Training" }} address={address} />
            {columns.map((column) => (
              <Heading key={column.id} column={column} address={address} />
            ))}
          </tr>
        </thead>
        {drawn}
      </table>
    </div>
  );
}

function entriesOf(groups: readonly Group[], closed: readonly string[]): readonly Entry[] {
  return groups.flatMap((group): Entry[] => {
    const rows = group.rows.map((row) => ({ key: row.id, row }));
    if (group.name === "") return rows;
    const head = { key: `group ${group.name}`, group };
    return closed.includes(group.name) ? [head] : [head, ...rows];
  });
}

function oneRow(row: RowProps["row"], { columns, isNarrow, selected, current, ...props }: Props): ReactNode {
  const its = {
    row,
    isSelected: selected.has(row.id),
    isCurrent: current === row.id,
    mayTrain: props.mayTrain,
    onSelect: props.onSelect,
    onFocus: props.onFocus,
  };
  return isNarrow ? <FleetItem {...its} /> : <FleetRow {...its} columns={columns} />;
}

function groupHead(group: Group, { address, columns, isNarrow }: Props): ReactNode {
  const isClosed = address.closed.includes(group.name);
  const toggle = () => {
    const rest = address.closed.filter((name) => name !== group.name);
    const next = isClosed ? rest : [...rest, group.name];
    address.change({ closed: next.join("\n") || null });
  };
  const head = (
    <Button kind="quiet" className={styles.group} aria-expanded={!isClosed} onClick={toggle}>
      <span aria-hidden>{isClosed ? "▸" : "▾"}</span>
      <b>{group.name}</b>
      <span className="quiet">{aboutGroup(group)}</span>
    </Button>
  );
  if (isNarrow) return head;
  return (
    <tr className={styles.groupRow}>
      <td colSpan={columns.length + 2}>{head}</td>
    </tr>
  );
}

/** `3 trainings, $0.93/h, $12.40`. */
function aboutGroup({ rows }: Group): string {
  const price = rows.reduce((sum, row) => sum + (row.price_per_hour_usd ?? 0), 0);
  const cost = rows.reduce((sum, row) => sum + row.cost_usd, 0);
  return [counted(rows.length, "training"), price > 0 ? dollarsPerHour(price) : "", dollars(cost)]
    .filter(Boolean)
    .join(", ");
}

interface HeadingProps {
  readonly column: Pick<Column, "id" | "label" | "isNumber">;
  readonly address: FleetAddress;
}

/** Pressed once it sorts upwards, twice downwards, three times as before. */
function Heading({ column, address: { sort, change } }: HeadingProps) {
  const { id, label, isNumber } = column;
  const way = sort === id ? "ascending" : sort === `-${id}` ? "descending" : undefined;
  const next = way === undefined ? id : way === "ascending" ? `-${id}` : null;
  return (
    <th scope="col" aria-sort={way} className={isNumber ? styles.number : undefined}>
      {isSortable(id) ? (
        <button type="button" className={styles.sort} onClick={() => change({ sort: next })}>
          {label}
          <span aria-hidden>{way === undefined ? "" : way === "ascending" ? " ↑" : " ↓"}</span>
        </button>
      ) : (
        label
      )}
    </th>
  );
}
