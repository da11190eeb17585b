import type { components } from "~/api/schema";
import { counted, dollars, dollarsPerHour, percent } from "~/text/format";
import styles from "./MoneyView.module.css";

interface Props {
  readonly budget: components["schemas"]["BudgetDocument"];
  /** What bills now, per hour. */
  readonly nowUsd: number;
  readonly isAdmin: boolean;
}

/** The limits on spending, and how much of them is used. */
export function BudgetBlock({ budget, nowUsd, isAdmin }: Props) {
  const limit = budget.daily_limit_usd;
  const share = limit === null ? null : (budget.committed_usd / limit) * 100;
  const tone = share === null || share < 80 ? styles.calm : share < 100 ? styles.near : styles.over;
  const isAbove = budget.hourly_alert_usd !== null && nowUsd > budget.hourly_alert_usd;
  return (
    <section className={styles.block} aria-labelledby="budget">
      <h2 id="budget">Budget</h2>
      {limit === null || share === null ? (
        <p>
          No daily limit is set: {dollars(budget.committed_usd)} in the last 24 hours, with what running trainings are
          expected to cost. {isAdmin ? <Setting name="limits.daily_spend" what="sets one for every user" /> : null}
        </p>
      ) : (
        <>
          <p>
            <strong>{dollars(budget.committed_usd)}</strong> of {dollars(limit)} in the last 24 hours ({percent(share)}
            ), with what running trainings are expected to cost.{" "}
            {share >= 100
              ? "▲ Used up: new trainings wait in the queue until there is room."
              : "Trainings that would exceed it wait in the queue."}
          </p>
          <div
            className={styles.bar}
            role="progressbar"
            aria-label="Used of the daily limit"
            aria-valuemin={0}
            aria-valuemax={100}
            aria-valuenow={Math.round(Math.min(100, share))}
          >
            <span className={tone} style={{ width: `${Math.min(100, share)}%` }} />
          </div>
        </>
      )}
      <p className="quiet">
        Each training also has a limit of its own, which you agree to when you start it.{" "}
        {budget.hourly_alert_usd === null
          ? ""
          : `Operators get an alert when all machines cost more than ${dollarsPerHour(budget.hourly_alert_usd)}. `}
        {`At most ${counted(budget.max_rentals, "machine")} at the same time per account.`}
      </p>
      {isAdmin && isAbove ? (
        <p className={styles.warning}>
          ▲ Machines cost {dollarsPerHour(nowUsd)} now, above the {dollarsPerHour(budget.hourly_alert_usd)} at which
          operators get an alert.
        </p>
      ) : null}
    </section>
  );
}

function Setting({ name, what }: { readonly name: string; readonly what: string }) {
  return (
    <span className="quiet">
      The setting <code>{name}</code> {what}.
    </span>
  );
}
