import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Button } from "~/design/Button";
import { Menu, type MenuEntry } from "~/design/Menu";
import { StateMark } from "~/design/StateMark";
import styles from "./Compare.module.css";
import type { Run } from "./comparedJobs";
import { RunMark } from "./RunMark";

interface TableProps {
  readonly label: string;
  readonly runs: readonly Run[];
  /** Rows of the body. */
  readonly children: ReactNode;
  /** Gives the heads of the columns what removes and moves them. */
  readonly onJobs?: (jobs: readonly string[]) => void;
}

/** A table with a column for each run. It scrolls in its own box where it is wider than the page. */
export function RunColumns({ label, runs, children, onJobs }: TableProps) {
  return (
    // A box that scrolls sideways must be reachable by keyboard.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
    <section className={styles.box} aria-label={label} tabIndex={0}>
      <table className={styles.table} style={{ minWidth: 112 + runs.length * 136 }}>
        <thead>
          <tr>
            <td className={styles.corner} />
            {runs.map((run, place) => (
              <th key={run.job.id} scope="col">
                <div className={styles.runHead}>
                  <RunMark slot={run.slot} letter={run.letter} />
                  <Link to="/jobs/$job" params={{ job: run.job.id }} className={styles.runName}>
                    {run.job.name}
                  </Link>
                  {onJobs ? (
                    <Menu
                      trigger={
                        <Button kind="quiet" className={styles.small} aria-label={`Move or remove run ${run.letter}`}>
                          ⋯
                        </Button>
                      }
                      entries={moves(runs, place, onJobs)}
                    />
                  ) : null}
                </div>
                {onJobs ? <StateMark shown={run.job.shown} /> : null}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

/** One row: its name and a value for each run. */
export function RunRow({ name, values }: { readonly name: ReactNode; readonly values: readonly ReactNode[] }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      {values.map((value, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the place is the run
        <td key={place}>{value}</td>
      ))}
    </tr>
  );
}

function moves(runs: readonly Run[], place: number, onJobs: (jobs: readonly string[]) => void): readonly MenuEntry[] {
  const ids = runs.map((run) => run.job.id);
  const swapped = (other: number) =>
    ids.map((id, at) => (at === place ? (ids[other] ?? id) : at === other ? (ids[place] ?? id) : id));
  return [
    { label: "Move left", disabled: place === 0, onSelect: () => onJobs(swapped(place - 1)) },
    { label: "Move right", disabled: place === ids.length - 1, onSelect: () => onJobs(swapped(place + 1)) },
    "line",
    { label: "Remove from the comparison", onSelect: () => onJobs(ids.filter((_, at) => at !== place)) },
  ];
}
