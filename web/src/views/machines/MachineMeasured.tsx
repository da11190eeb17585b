import { useQuery } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import type { Machine } from "~/api/documents";
import { asProblem } from "~/api/problem";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Sparkline } from "~/design/Sparkline";
import { figure } from "~/text/format";
import styles from "./Machines.module.css";

/** What `stationmaster monitor` stored of a machine, as small lines. */
export function MachineMeasured({ machine }: { readonly machine: Machine }) {
  const path = { provider: machine.provider, instance: machine.instance };
  const { data, error } = useQuery({
    queryKey: ["machine", machine.provider, machine.instance, "series"],
    queryFn: () =>
      answer(
        api.GET("/api/instances/{provider}/{instance}/metrics/series", {
          params: { path, query: { axis: "time", columns: 60 } },
        }),
      ),
  });
  if (error && asProblem(error).status === 404) {
    return (
      <p className="quiet">
        Nothing was measured of it without a training. Run <code>stationmaster monitor</code> to watch it; what is
        measured of a training is on its page.
      </p>
    );
  }
  if (error) return <ProblemNote problem={error} />;
  if (!data) return <Loading what="what was measured" height={40} />;
  return (
    <ul className={styles.measured} aria-label={`Measured of ${machine.instance}`}>
      {data.series.map((series) => {
        const last = series.y[series.y.length - 1];
        return (
          <li key={series.name}>
            <span className="quiet">{series.name.replaceAll("_", " ")}</span>
            <Sparkline values={series.y} />
            <span>{figure(last)}</span>
          </li>
        );
      })}
    </ul>
  );
}
