import type { Job, JobEvent } from "~/api/documents";
import { CopyText } from "~/design/CopyText";
import { counted, dollarsPerHour } from "~/text/format";
import styles from "./JobHeader.module.css";

/** Where it runs, or ran last: GPU, place, provider, instance, price, and how to log in. */
export function MachineLine({ job, events }: { readonly job: Job; readonly events: readonly JobEvent[] }) {
  const rented = events.findLast(({ kind }) => kind === "rental_held");
  const live = job.providerState.instanceId;
  const provider = job.execution.provider;
  if (!rented && !live) {
    return (
      <p className={styles.machine}>
        No machine yet, provider {provider}
        {job.quote.gpu ? `, planned on ${job.quote.gpu}` : ""}
      </p>
    );
  }
  const parts = [
    text(rented?.gpu) ?? job.gpus,
    text(rented?.region),
    provider,
    `instance ${live ?? text(rented?.provider_id) ?? "unknown"}`,
    typeof rented?.price_per_hour_usd === "number" ? dollarsPerHour(rented.price_per_hour_usd) : null,
    job.attempt > 1 ? counted(job.attempt, "attempt") : null,
  ];
  return (
    <p className={styles.machine}>
      <span>
        {live ? "" : "Ran on "}
        {parts.filter((part) => part !== null && part !== "").join(", ")}
      </span>
      {live ? <CopyText text={`stationmaster ssh ${job.id}`} what="command that logs in" /> : null}
    </p>
  );
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
