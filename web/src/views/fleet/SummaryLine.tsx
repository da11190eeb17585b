import type { OverviewSummary } from "~/api/documents";
import { count, dollars, dollarsPerHour, percent } from "~/text/format";
import styles from "./Fleet.module.css";

/** All trainings in one line: how many run, what needs a person, what it costs, how busy the GPUs are. */
export function SummaryLine({ summary }: { readonly summary: OverviewSummary }) {
  return (
    <dl className={styles.summary} aria-label="All trainings together">
      <Fact name="running" value={`${count(summary.running)}/${count(summary.unfinished)}`} />
      {summary.queued > 0 ? <Fact name="queued" value={count(summary.queued)} /> : null}
      {summary.needing > 0 ? (
        <Fact name="need you" value={count(summary.needing)} className={styles.attention} mark="▲" />
      ) : null}
      {summary.failed > 0 ? (
        <Fact name="failed today" value={count(summary.failed)} className={styles.bad} mark="✕" />
      ) : null}
      <Fact name="now" value={dollarsPerHour(summary.price_per_hour_usd)} />
      <Fact name="today" value={dollars(summary.spent_today_usd)} />
      <Fact name="in all" value={dollars(summary.spent_total_usd)} className={styles.wide} />
      {summary.gpu_percent !== null ? (
        <Fact name="GPU use" value={percent(summary.gpu_percent)} className={styles.wide} />
      ) : null}
      {summary.memory_percent !== null ? (
        <Fact name="GPU memory" value={percent(summary.memory_percent)} className={styles.wide} />
      ) : null}
    </dl>
  );
}

interface FactProps {
  readonly name: string;
  readonly value: string;
  readonly className?: string;
  readonly mark?: string;
}

function Fact({ name, value, className, mark }: FactProps) {
  return (
    <div className={className}>
      <dt>{name}</dt>
      <dd>
        {mark ? <span aria-hidden>{mark} </span> : null}
        {value}
      </dd>
    </div>
  );
}
