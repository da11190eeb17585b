import { Link } from "@tanstack/react-router";
import { counted } from "~/text/format";
import type { Retry } from "../prefill";
import type { RetryBase } from "./base";
import styles from "./Differences.module.css";
import type { Difference } from "./differences";

interface Props {
  readonly base: RetryBase;
  readonly retry: Retry;
  readonly differences: readonly Difference[];
}

/** What the new job changes, before anything else is read. */
export function Differences({ base, retry, differences }: Props) {
  const skipped = base.terms.skipped ?? [];
  return (
    <section className={styles.differences} aria-label="Differences">
      <p>
        Like{" "}
        <Link to="/jobs/$job" params={{ job: base.job.id }}>
          {base.job.name}
        </Link>
        , on the same dataset{retry.resume ? ", going on from its best checkpoint" : ", from the beginning"}.{" "}
        {differences.length === 0
          ? "Nothing else differs."
          : `${counted(differences.length, "setting differs", "settings differ")}:`}
      </p>
      {differences.length > 0 ? (
        <table>
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Before</th>
              <th scope="col">Now</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>
            {differences.map((one) => (
              <tr key={one.what}>
                <th scope="row">{one.what}</th>
                <td className={styles.before}>{one.before}</td>
                <td>
                  <span className="visually-hidden">changed to </span>→ {one.after}
                </td>
                <td>{one.advice ?? "your change"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {skipped.length > 0 ? (
        <details>
          <summary>{counted(skipped.length, "recommendation")} not followed</summary>
          <ul>
            {skipped.map((one) => (
              <li key={one.number}>
                {one.title}: <span className="quiet">{one.why}</span>
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </section>
  );
}
