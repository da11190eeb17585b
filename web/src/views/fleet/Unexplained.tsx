import { useQuery } from "@tanstack/react-query";
import { instancesQuery } from "~/api/overview";
import { useNow } from "~/design/When";
import { EndMachine } from "~/views/machines/EndMachine";
import { aboutMachine, billedFor, isUnexplained } from "~/views/machines/machines";
import styles from "./Fleet.module.css";

/** Machines that bill without a training that explains it: first of all, in red. Only for those who may end them. */
export function Unexplained() {
  const { data } = useQuery(instancesQuery);
  const now = useNow();
  const found = (data?.machines ?? []).filter(isUnexplained);
  if (found.length === 0) return null;
  return (
    <ul className={styles.unexplained} aria-label="Machines without a training">
      {found.map((machine) => (
        <li key={`${machine.provider}/${machine.instance}`}>
          <span>
            <span aria-hidden>✕ </span>
            <b>Instance {machine.instance}</b> {billedFor(machine, now)} and{" "}
            {machine.job ? `is not needed by ${machine.job}` : "belongs to no training"}: {machine.why}.{" "}
            <span className={styles.about}>{aboutMachine(machine)}</span>
          </span>
          <EndMachine machine={machine} />
        </li>
      ))}
    </ul>
  );
}
