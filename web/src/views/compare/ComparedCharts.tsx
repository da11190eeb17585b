import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { LineChart } from "~/charts/LineChart";
import { SPANS, usualSpan } from "~/charts/smoothing";
import { Loading } from "~/design/Empty";
import { useAddressValue } from "~/frame/address";
import { measuredQuery, seriesQuery } from "~/views/job/measured";
import { ChartControls } from "./ChartControls";
import styles from "./Compare.module.css";
import type { Run } from "./comparedJobs";
import { METRICS, namesOf, overlaid } from "./overlaid";
import { runSummaryQuery } from "./queries";
import { zoomOf, zoomText } from "./zoom";

const COLUMNS = 800;

/** The charts of all runs over each other. Smoothing, scale, axis and zoom are in the address. */
export function ComparedCharts({ runs }: { readonly runs: readonly Run[] }) {
  const [axis, setAxis] = useAddressValue("axis");
  const [smooth, setSmooth] = useAddressValue("smooth");
  const [log, setLog] = useAddressValue("log");
  const [steps, setSteps] = useAddressValue("steps");
  const [seconds, setSeconds] = useAddressValue("seconds");
  const zooms = useMemo(() => ({ step: zoomOf(steps), elapsed: zoomOf(seconds) }), [steps, seconds]);
  const byTime = axis === "time";

  const names = useQueries({ queries: runs.map((run) => measuredQuery(run.job.id)) });
  const began = useQueries({ queries: runs.map((run) => runSummaryQuery(run.job.id)) });
  const drawn = useQueries({
    queries: runs.map((run, place) =>
      seriesQuery(run.job.id, {
        names: namesOf(names[place]?.data?.series ?? []),
        axis: byTime ? "time" : "step",
        columns: COLUMNS,
      }),
    ),
  });
  const answers = drawn.map((one) => one.data);
  const begins = began.map((one) => one.data?.began_at ?? null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the answers and the runs' marks are what counts, not the lists
  const charts = useMemo(
    () =>
      overlaid(
        runs.map((run, place) => ({
          run,
          series: answers[place]?.series ?? [],
          beganAt: secondsOf(begins[place] ?? null),
        })),
      ),
    [...answers, ...begins, runs.map((run) => `${run.job.id} ${run.slot} ${run.job.name}`).join()],
  );
  const longest = Math.max(0, ...charts.flatMap(({ series }) => series.map((one) => one.count ?? one.x.length)));
  const usual = usualSpan(longest);
  const span = SPANS.find((one) => String(one) === smooth) ?? usual;
  const isLoading = [...names, ...drawn].some((one) => one.isLoading);
  return (
    <section className={styles.section} aria-labelledby="charts">
      <div className={styles.head}>
        <h2 id="charts">Charts</h2>
        <ChartControls
          byTime={byTime}
          onByTime={(isTime) => setAxis(isTime ? "time" : null)}
          span={span}
          usual={usual}
          onSpan={(chosen) => setSmooth(chosen === usual ? null : chosen)}
          isLog={log === "1"}
          onLog={(isLog) => setLog(isLog ? 1 : null)}
        />
      </div>
      {charts.length === 0 && isLoading ? (
        <Loading what="the charts" height={460} />
      ) : charts.length === 0 ? (
        <p className="quiet">Nothing was measured of these runs yet.</p>
      ) : (
        <div className={styles.charts}>
          {charts.map(({ metric, axis: own, series }) => (
            <LineChart
              key={metric.title}
              height={metric === METRICS[0] ? 260 : undefined}
              title={own === "elapsed" && !byTime ? `${metric.title}, by time` : metric.title}
              level={3}
              axis={own}
              series={series}
              format={metric.format}
              tick={metric.tick}
              ends={metric.ends}
              span={span}
              log={log === "1" && metric.mayBeLog === true}
              group={`compare-${own}`}
              range={zooms[own]}
              onRange={(range) => (own === "step" ? setSteps(zoomText(range, 0)) : setSeconds(zoomText(range, 1)))}
            />
          ))}
        </div>
      )}
    </section>
  );
}

function secondsOf(at: string | null): number | null {
  const time = at === null ? Number.NaN : Date.parse(at);
  return Number.isNaN(time) ? null : time / 1000;
}
