import type { Evidence } from "~/api/documents";
import { UNKNOWN } from "~/text/format";
import { settingValue } from "~/text/values";
import styles from "./Analysis.module.css";

/** The facts behind a recommendation, each with the limit that it crossed. */
export function EvidenceTable({ evidence }: { readonly evidence: readonly Evidence[] }) {
  if (evidence.length === 0) return null;
  const hasLimits = evidence.some((fact) => isKnown(fact.threshold));
  return (
    <table className={styles.facts}>
      <thead className="visually-hidden">
        <tr>
          <th scope="col">What</th>
          <th scope="col">Measured</th>
          {hasLimits ? <th scope="col">Limit</th> : null}
        </tr>
      </thead>
      <tbody>
        {evidence.map((fact) => (
          <tr key={fact.what}>
            <th scope="row">{fact.what}</th>
            <td>{amount(fact.value, fact.unit)}</td>
            {hasLimits ? (
              <td className="quiet">{isKnown(fact.threshold) ? `limit ${amount(fact.threshold, fact.unit)}` : ""}</td>
            ) : null}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function isKnown(value: unknown): boolean {
  return value !== null && value !== undefined;
}

function amount(value: unknown, unit: string | undefined): string {
  const text = settingValue(value);
  return unit && text !== UNKNOWN ? `${text} ${unit}` : text;
}
