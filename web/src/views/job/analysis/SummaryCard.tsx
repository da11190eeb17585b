import type { Analysis, Job, LogError } from "~/api/documents";
import { Badge } from "~/design/StateMark";
import { When } from "~/design/When";
import { count, counted, duration, peakOf, UNKNOWN } from "~/text/format";
import { healthLook } from "~/text/health";
import styles from "./Analysis.module.css";

const POOLS: Record<string, string> = { gpu: "GPU memory", system: "System memory", container: "Container memory" };

/** How the training went, in four figures. */
export function SummaryCard({ analysis, job }: { readonly analysis: Analysis; readonly job: Job }) {
  const { summary, log_errors } = analysis;
  const look = healthLook(analysis.health);
  const errors = log_errors.filter((error) => error.level === "ERROR");
  const times = errors.reduce((sum, error) => sum + error.count, 0);
  return (
    <dl className={styles.summary}>
      <div>
        <dt>Health</dt>
        <dd>
          <Badge tone={look.tone}>
            <span aria-hidden>{look.mark}</span> {look.word}
          </Badge>
        </dd>
        <dd className="quiet">
          Analysed <When at={analysis.created_at} />
        </dd>
      </div>
      <div>
        <dt>Peak {POOLS[summary.memory_pool ?? ""]?.replace(/^S|^C/, (first) => first.toLowerCase()) ?? "memory"}</dt>
        <dd className={styles.number}>{peakOf(summary.peak_memory_gb, summary.total_memory_gb)}</dd>
        <dd className="quiet">{summary.peak_memory_gb === null ? "not measured" : "highest of the whole run"}</dd>
      </div>
      <div>
        <dt>Duration</dt>
        <dd className={styles.number}>
          {duration(summary.duration_minutes === null ? null : summary.duration_minutes * 60)}
        </dd>
        <dd className="quiet">{completion(analysis, job)}</dd>
      </div>
      <div>
        <dt>Errors in the log</dt>
        <dd className={styles.number}>{count(times)}</dd>
        <dd className="quiet">
          {log_errors.length === 0 ? "none found" : errorWords(errors, log_errors.length - errors.length)}
        </dd>
      </div>
    </dl>
  );
}

function completion({ summary }: Analysis, job: Job): string {
  const steps =
    summary.steps_completed === null
      ? UNKNOWN
      : `${count(summary.steps_completed)}${summary.total_steps === null ? "" : ` of ${count(summary.total_steps)}`}`;
  const word = summary.training_completed ? "Completed" : job.state === "EXECUTING" ? "Runs" : "Not completed";
  return `${word}, ${steps} steps`;
}

/** `killed`, `out of memory, 2 warnings`. */
function errorWords(errors: readonly LogError[], warnings: number): string {
  const kinds = [...new Set(errors.map((error) => error.kind.replaceAll("_", " ")))].filter((kind) => kind !== "other");
  const parts = [...kinds.slice(0, 2), warnings > 0 ? counted(warnings, "warning") : ""].filter(Boolean);
  return parts.join(", ") || "listed below";
}
