import type { components } from "~/api/schema";
import { counted, dollars, dollarsPerHour, UNKNOWN } from "~/text/format";
import styles from "./MoneyView.module.css";

interface Props {
  readonly summary: components["schemas"]["SummaryDocument"] | undefined;
  readonly monthUsd: number | undefined;
}

/** The figures that a visitor looks for first. */
export function Figures({ summary, monthUsd }: Props) {
  const running = summary
    ? summary.price_per_hour_usd > 0
      ? counted(summary.running, "training")
      : "nothing runs"
    : "";
  return (
    <dl className={styles.figures}>
      <Figure name="Now" value={summary ? dollarsPerHour(summary.price_per_hour_usd) : UNKNOWN} note={running} />
      <Figure name="Today" value={dollars(summary?.spent_today_usd)} note="since midnight" />
      <Figure name="This month" value={dollars(monthUsd)} note={`since ${firstOfMonth()}`} />
      <Figure name="In total" value={dollars(summary?.spent_total_usd)} note="since the beginning" />
    </dl>
  );
}

function Figure({ name, value, note }: { readonly name: string; readonly value: string; readonly note: string }) {
  return (
    <div>
      <dt className="quiet">{name}</dt>
      <dd className={styles.number}>{value}</dd>
      <dd className="quiet">{note}</dd>
    </div>
  );
}

function firstOfMonth(): string {
  const now = new Date();
  const first = new Date(now.getFullYear(), now.getMonth(), 1);
  return first.toLocaleDateString("en-GB", { day: "numeric", month: "long" });
}
