import type { DatasetProblem, DatasetReport } from "~/api/documents";
import { Badge } from "~/design/StateMark";
import { bytes, counted } from "~/text/format";
import styles from "./Report.module.css";

const MOST_LISTED = 50;

/** What a check found: the verdict first, then what is wrong with the whole and with files that are no pictures. */
export function Report({ report, hasPictures }: { readonly report: DatasetReport; readonly hasPictures: boolean }) {
  const general = report.problems.filter((one) => one.path === "" || !hasPictures);
  const others = report.problems.length - general.length;
  return (
    <div className={styles.report}>
      <p className={styles.verdict}>
        <Badge tone={report.trainable ? (report.warnings > 0 ? "attention" : "good") : "bad"}>
          {report.trainable ? (report.warnings > 0 ? "▲ Can be trained on" : "✓ Ready") : "✕ Cannot be trained on yet"}
        </Badge>
        <span className="quiet">
          {[
            report.images > 0 ? counted(report.images, "picture") : null,
            report.captions > 0 ? counted(report.captions, "caption") : null,
            report.rows > 0 ? counted(report.rows, "line") : null,
            bytes(report.bytes),
            report.errors > 0 ? counted(report.errors, "error") : null,
            report.warnings > 0 ? counted(report.warnings, "warning") : null,
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </p>
      <Problems problems={general} />
      {others > 0 && hasPictures ? (
        <details>
          <summary>{counted(others, "finding")} about single files</summary>
          <Problems problems={report.problems.filter((one) => one.path !== "")} />
        </details>
      ) : null}
    </div>
  );
}

function Problems({ problems }: { readonly problems: readonly DatasetProblem[] }) {
  if (problems.length === 0) return null;
  return (
    <ul className={styles.problems}>
      {problems.slice(0, MOST_LISTED).map((one) => (
        <li key={one.code + one.path + one.message}>
          <span className={one.severity === "error" ? styles.error : styles.warning}>
            {one.severity === "error" ? "✕" : "▲"} {one.path ? <code>{one.path}: </code> : null}
            {one.message}
          </span>
          {one.fix ? <span className="quiet"> {one.fix}</span> : null}
        </li>
      ))}
      {problems.length > MOST_LISTED ? <li>… and {problems.length - MOST_LISTED} more</li> : null}
    </ul>
  );
}
