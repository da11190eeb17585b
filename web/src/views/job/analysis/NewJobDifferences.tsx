import type { Job, Terms } from "~/api/documents";
import { dollars, duration } from "~/text/format";
import { settingName, settingValue } from "~/text/values";
import styles from "./ApplyDialog.module.css";

interface Props {
  readonly job: Job;
  readonly terms: Terms;
  /** Whether newer terms are being fetched. */
  readonly isOld: boolean;
}

/** Old value, new value, and what that does to time and price. */
export function NewJobDifferences({ job, terms, isOld }: Props) {
  const applied = terms.applied ?? [];
  return (
    <div className={isOld ? styles.old : undefined}>
      <table className={styles.differences}>
        <thead>
          <tr>
            <th scope="col">Setting</th>
            <th scope="col">{job.name}</th>
            <th scope="col">New job</th>
          </tr>
        </thead>
        <tbody>
          {applied.map((one) => (
            <tr key={one.what}>
              <th scope="row">
                <code>{one.what.includes(".") ? settingName(one.what) : one.what}</code>
              </th>
              <td>{settingValue(one.before)}</td>
              <td>
                <strong>{settingValue(one.after)}</strong>
                {one.note ? <p className="quiet">{one.note}</p> : null}
              </td>
            </tr>
          ))}
          <tr>
            <th scope="row">Time, estimated</th>
            <td>{duration(job.quote.hours.expected * 3600)}</td>
            <td>{duration(terms.quote.hours.expected * 3600)}</td>
          </tr>
          <tr>
            <th scope="row">Price, estimated</th>
            <td>{dollars(job.quote.cost_usd.expected)}</td>
            <td>
              {dollars(terms.quote.cost_usd.expected)}{" "}
              <span className="quiet">at most {dollars(terms.limits.max_spend_usd)}</span>
            </td>
          </tr>
        </tbody>
      </table>
      {terms.notes.length > 0 ? (
        <ul className={styles.notes}>
          {terms.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
