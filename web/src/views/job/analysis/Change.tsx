import type { Recommendation } from "~/api/documents";
import { settingName, settingUnit, settingValue } from "~/text/values";
import styles from "./Analysis.module.css";

/** `workers 2 → 6`. Nothing where the advice has no value, such as another machine. */
export function Change({ recommendation }: { readonly recommendation: Recommendation }) {
  const { lever, current_value, recommended_value } = recommendation;
  if (recommended_value === null || recommended_value === undefined) return null;
  return (
    <Difference name={settingName(lever)} before={current_value} after={recommended_value} unit={settingUnit(lever)} />
  );
}

interface DifferenceProps {
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly unit?: string;
}

export function Difference({ name, before, after, unit = "" }: DifferenceProps) {
  const isKnown = before !== null && before !== undefined;
  return (
    <p className={styles.change}>
      <span className={styles.changeName}>{name}</span>{" "}
      {isKnown ? (
        <>
          <span className={styles.before}>
            {settingValue(before)}
            {unit}
          </span>
          <span aria-hidden> → </span>
          <span className="visually-hidden"> to </span>
        </>
      ) : null}
      <strong className={styles.after}>
        {settingValue(after)}
        {unit}
      </strong>
    </p>
  );
}
