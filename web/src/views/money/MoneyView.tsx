import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { sessionQuery } from "~/api/queries";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useTitle } from "~/frame/title";
import { Breakdown } from "./Breakdown";
import { BudgetBlock } from "./BudgetBlock";
import { CostBars } from "./CostBars";
import { CreditsBlock } from "./credits/CreditsBlock";
import { Figures } from "./Figures";
import type { By } from "./grouping";
import styles from "./MoneyView.module.css";
import { budgetQuery, costsInRangeQuery, jobCostsQuery, monthQuery, type Range } from "./queries";

const BYS: readonly By[] = ["training", "recipe", "provider", "user"];
const RANGES: readonly Range[] = ["2d", "30d", "90d"];

/** What is spent, on what, and what the limits are. */
export function MoneyView() {
  useTitle("Money");
  const navigate = useNavigate();
  const search: { by?: string; range?: string } = useSearch({ strict: false });
  const by = BYS.find((each) => each === search.by) ?? "training";
  const range = RANGES.find((each) => each === search.range) ?? "30d";
  const { data: session } = useQuery(sessionQuery);
  const jobs = useQuery(jobCostsQuery);
  const month = useQuery(monthQuery);
  const costs = useQuery(costsInRangeQuery(range));
  const budget = useQuery(budgetQuery);
  const choose = (changed: { by?: By; range?: Range }) =>
    void navigate({ to: "/money", search: { by, range, ...changed }, replace: true });

  if (jobs.error && !jobs.data) return <ProblemNote problem={jobs.error} onRetry={() => void jobs.refetch()} />;
  const isMine = session?.role !== "admin";
  return (
    <>
      <h1>Money</h1>
      {isMine ? <p className="quiet">Of your own trainings.</p> : null}
      <div className={styles.page}>
        <Figures summary={jobs.data?.summary} monthUsd={month.data?.total_usd} />
        {budget.data ? (
          <BudgetBlock
            budget={budget.data}
            nowUsd={jobs.data?.summary.price_per_hour_usd ?? 0}
            isAdmin={session?.role === "admin"}
          />
        ) : (
          <Loading what="the limits" height={96} />
        )}
        {costs.error && !costs.data ? <ProblemNote problem={costs.error} /> : null}
        <CostBars costs={costs.data} range={range} onRange={(chosen) => choose({ range: chosen })} />
        {jobs.data ? (
          jobs.data.rows.length === 0 && jobs.data.summary.spent_total_usd === 0 ? (
            <Empty title="Nothing spent yet">What machines cost is shown here from the first training on.</Empty>
          ) : (
            <Breakdown
              rows={jobs.data.rows}
              totalUsd={jobs.data.summary.spent_total_usd}
              by={by}
              onBy={(chosen) => choose({ by: chosen })}
              withUsers={!isMine}
            />
          )
        ) : (
          <Loading what="what trainings cost" height={320} />
        )}
        {session ? <CreditsBlock session={session} /> : null}
      </div>
    </>
  );
}
