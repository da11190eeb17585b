import { useQuery } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { exactly } from "~/text/format";
import styles from "../Parts.module.css";

export function AboutSection() {
  const { data, error, refetch, dataUpdatedAt } = useQuery({
    queryKey: ["server"],
    queryFn: () => answer(api.GET("/api/server")),
    refetchInterval: 30_000,
  });
  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading what="the server" />;
  const difference = Math.abs(Date.parse(data.now) - dataUpdatedAt) / 1000;
  return (
    <>
      <h2>About</h2>
      <dl className={styles.facts}>
        <dt>Version</dt>
        <dd>Stationmaster {data.version}</dd>
        <dt>Server's time</dt>
        <dd>
          {exactly(Date.parse(data.now))}
          {difference > 30 ? (
            <span className={styles.bad}> ▲ differs from this computer's clock by {Math.round(difference)} s</span>
          ) : null}
        </dd>
        <dt>HTTP API</dt>
        <dd>
          <a href="/api/openapi.json">its description (OpenAPI)</a>
        </dd>
        <dt>Keys</dt>
        <dd>
          Press <kbd>?</kbd> on any page to see its keys, <kbd>/</kbd> to search.
        </dd>
      </dl>
    </>
  );
}
