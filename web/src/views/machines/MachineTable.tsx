import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Machine } from "~/api/documents";
import { Button } from "~/design/Button";
import { Badge } from "~/design/StateMark";
import { When } from "~/design/When";
import { dollarsPerHour, UNKNOWN } from "~/text/format";
import { EndMachine } from "./EndMachine";
import { MachineMeasured } from "./MachineMeasured";
import styles from "./Machines.module.css";
import { actWords, gpusOf, isUnexplained, statusLook } from "./machines";

interface Props {
  readonly machines: readonly Machine[];
  readonly mayManage: boolean;
}

/** Those that no training explains first. */
export function MachineTable({ machines, mayManage }: Props) {
  const ordered = [...machines].sort((one, other) => Number(isUnexplained(other)) - Number(isUnexplained(one)));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls a wide table with the keys
    <section className={styles.scroll} aria-label="Machines" tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Instance</th>
            <th scope="col">Status</th>
            <th scope="col">GPU</th>
            <th scope="col">Per hour</th>
            <th scope="col">Since</th>
            <th scope="col">Training</th>
            <th scope="col">A sweep would</th>
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        {ordered.map((machine) => (
          <MachineRows key={`${machine.provider}/${machine.instance}`} machine={machine} mayManage={mayManage} />
        ))}
      </table>
    </section>
  );
}

function MachineRows({ machine, mayManage }: { readonly machine: Machine; readonly mayManage: boolean }) {
  const [isOpen, setIsOpen] = useState(false);
  const [tone, mark, word] = statusLook(machine.status);
  const [actTone, act] = actWords(machine.act);
  return (
    <tbody className={isUnexplained(machine) ? styles.unexplained : undefined}>
      <tr>
        <th scope="row">
          <span className="mono">{machine.instance}</span> <span className="quiet">{machine.provider}</span>
        </th>
        <td>
          <Badge tone={tone}>
            <span aria-hidden>{mark}</span> {word}
          </Badge>
        </td>
        <td>{gpusOf(machine) ?? UNKNOWN}</td>
        <td>{dollarsPerHour(machine.price_per_hour_usd)}</td>
        <td>
          <When at={machine.created_at} />
        </td>
        <td>
          {machine.job ? (
            <Link to="/jobs/$job" params={{ job: machine.job }}>
              {machine.job}
            </Link>
          ) : (
            UNKNOWN
          )}
        </td>
        <td className={styles.why}>
          <Badge tone={actTone}>{act}</Badge> {machine.why}
          {machine.message ? <span className="quiet"> · {machine.message}</span> : null}
          {machine.problem ? <span className={styles.problem}> · {machine.problem}</span> : null}
        </td>
        <td className={styles.actions}>
          <Button
            kind="quiet"
            aria-expanded={isOpen}
            aria-label={`Measured of ${machine.instance}`}
            onClick={() => setIsOpen(!isOpen)}
          >
            {isOpen ? "▾" : "▸"} measured
          </Button>
          {mayManage ? <EndMachine machine={machine} /> : null}
        </td>
      </tr>
      {isOpen ? (
        <tr>
          <td colSpan={8}>
            <MachineMeasured machine={machine} />
          </td>
        </tr>
      ) : null}
    </tbody>
  );
}
