import type { LogError } from "~/api/documents";
import { Badge } from "~/design/StateMark";
import { When } from "~/design/When";
import { count, gigabytes, isoTime, percent, UNKNOWN } from "~/text/format";
import { severityLook } from "~/text/health";
import styles from "./Analysis.module.css";

/** What the log reports, once each, with the memory at that time and the stack trace behind a fold. */
export function LogErrors({ errors, total }: { readonly errors: readonly LogError[]; readonly total: number | null }) {
  return (
    <section aria-labelledby="log-errors">
      <h3 id="log-errors">Errors in the log</h3>
      {errors.length === 0 ? (
        <p className="quiet">The log has no errors.</p>
      ) : (
        <ul className={styles.errors}>
          {errors.map((error, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the errors of an analysis do not move
            <Entry key={place} error={error} total={total} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Entry({ error, total }: { readonly error: LogError; readonly total: number | null }) {
  const look = severityLook(error.level === "ERROR" ? "critical" : "warning");
  return (
    <li className={styles.error}>
      <div className={styles.errorHead}>
        <Badge tone={look.tone}>
          <span aria-hidden>{look.mark}</span> {error.level === "ERROR" ? "Error" : "Warning"}
        </Badge>
        <span className="quiet">
          {error.timestamp === null ? "time unknown" : <When at={isoTime(error.timestamp)} />}
        </span>
        <span className="quiet">memory {memory(error.memory_at_time_gb, total)}</span>
        {error.count > 1 ? <span className="quiet">{count(error.count)} times</span> : null}
      </div>
      <p className={styles.message}>{error.message}</p>
      {error.traceback ? (
        <details>
          <summary>Stack trace</summary>
          <pre className={styles.trace}>{error.traceback}</pre>
        </details>
      ) : null}
    </li>
  );
}

function memory(used: number | null, total: number | null): string {
  if (used === null) return UNKNOWN;
  return total ? `${gigabytes(used)} (${percent((used / total) * 100)})` : gigabytes(used);
}
