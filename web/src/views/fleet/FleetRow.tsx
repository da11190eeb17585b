import { Link } from "@tanstack/react-router";
import { memo, type ReactNode, useEffect, useRef } from "react";
import type { OverviewRow } from "~/api/documents";
import { StateMark } from "~/design/StateMark";
import { dollarsPerHour } from "~/text/format";
import { type Column, costOf, etaOf, lossOf, progressOf } from "./columns";
import styles from "./Fleet.module.css";
import { NeedsLine } from "./NeedsLine";
import { shownOf } from "./rows";

export interface RowProps {
  readonly row: OverviewRow;
  readonly columns: readonly Column[];
  readonly mayTrain: boolean;
  readonly isSelected: boolean;
  /** The keys moved here: it takes the focus. */
  readonly isCurrent: boolean;
  readonly onSelect: (id: string) => void;
  readonly onFocus: (id: string) => void;
}

/** One training as a line of the table; a second line says why it needs a person. */
export const FleetRow = memo(function FleetRow({ columns, ...props }: RowProps) {
  const { row, mayTrain } = props;
  return (
    <>
      <tr className={rowClass(props)}>
        <td className={styles.pick}>
          <Pick {...props} />
        </td>
        <th scope="row" className={styles.name}>
          <NameLink {...props} />
        </th>
        {columns.map((column) => (
          <td key={column.id} className={column.isNumber ? styles.number : undefined}>
            {column.show(row)}
          </td>
        ))}
      </tr>
      {row.needs || failureOf(row) ? (
        <tr className={styles.second}>
          <td />
          <td colSpan={columns.length + 1}>
            <NeedsLine row={row} mayTrain={mayTrain} />
            {failureOf(row)}
          </td>
        </tr>
      ) : null}
    </>
  );
});

/** The same in two lines, for a narrow screen. */
export const FleetItem = memo(function FleetItem(props: Omit<RowProps, "columns">) {
  const { row, mayTrain } = props;
  return (
    <div className={rowClass(props)}>
      <div className={styles.first}>
        <Pick {...props} />
        <span className={styles.name}>
          <NameLink {...props} />
        </span>
        <StateMark shown={shownOf(row)} />
      </div>
      <div className={styles.facts}>
        {row.ended_at || row.percent === null ? null : progressOf(row)}
        {row.loss === null ? null : lossOf(row)}
        {row.ended_at || row.eta_seconds !== null ? <span>{etaOf(row)}</span> : null}
        {row.price_per_hour_usd === null ? null : <span>{dollarsPerHour(row.price_per_hour_usd)}</span>}
        <span>{costOf(row)}</span>
      </div>
      <NeedsLine row={row} mayTrain={mayTrain} />
      {failureOf(row)}
    </div>
  );
});

function rowClass({ row, isSelected }: Pick<RowProps, "row" | "isSelected">): string {
  return [styles.row, isSelected ? styles.selected : "", row.ended_at ? styles.ended : ""].filter(Boolean).join(" ");
}

/** Why it failed; how others ended, their mark says. */
function failureOf(row: OverviewRow): ReactNode {
  if (!row.explanation || !row.shown.startsWith("FAILED")) return null;
  return <p className={styles.failure}>{row.explanation}</p>;
}

type CellProps = Omit<RowProps, "columns">;

function Pick({ row, isSelected, onSelect }: CellProps) {
  return (
    <label className={styles.check}>
      <input type="checkbox" checked={isSelected} onChange={() => onSelect(row.id)} />
      <span className="visually-hidden">Select {row.name} to compare it</span>
    </label>
  );
}

function NameLink({ row, isCurrent, onFocus }: CellProps) {
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isCurrent && document.activeElement !== link.current) link.current?.focus();
  }, [isCurrent]);
  return (
    <Link
      ref={link}
      to="/jobs/$job"
      params={{ job: row.id }}
      onFocus={() => onFocus(row.id)}
      title={`${row.name} (${row.id}), ${row.recipe}`}
    >
      {row.name}
    </Link>
  );
}
