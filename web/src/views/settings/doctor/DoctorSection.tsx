import { useQuery } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import type { Check } from "~/api/documents";
import { Button } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { clock, counted } from "~/text/format";
import styles from "../Parts.module.css";

const LEVELS = {
  fail: { className: styles.bad, sign: "✕", word: "failed:" },
  warn: { className: styles.warn, sign: "!", word: "warning:" },
  ok: { className: styles.good, sign: "✓", word: "passed:" },
} as const;

/** The checks of `stationmaster doctor`, those that failed first. */
export function DoctorSection() {
  const { data, error, refetch, isFetching, dataUpdatedAt } = useQuery({
    queryKey: ["checks"],
    queryFn: () => answer(api.GET("/api/checks")),
    staleTime: Number.POSITIVE_INFINITY, // they write to the bucket and ask providers: only on request
  });
  const of = (level: Check["level"]) => data?.items.filter((check) => check.level === level) ?? [];
  const [failed, warned, passed] = [of("fail"), of("warn"), of("ok")];
  return (
    <>
      <div className={styles.head}>
        <h2>Doctor</h2>
        <p role="status" className={failed.length > 0 ? styles.bad : styles.good}>
          {data ? (failed.length === 0 ? "✓ All checks passed" : `✕ ${counted(failed.length, "check")} failed`) : ""}
          {warned.length > 0 ? `, ${counted(warned.length, "warning")}` : ""}
        </p>
        {data ? <p className="quiet">checked at {clock(dataUpdatedAt)}</p> : null}
        <Button busy={isFetching} onClick={() => void refetch()}>
          Check again
        </Button>
      </div>
      {error ? <ProblemNote problem={error} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Loading what="the checks" height={256} /> : null}
      <ul className={styles.results} aria-label="Checks">
        {[...failed, ...warned, ...passed].map((check, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a check can be there twice, such as one for each alert
          <CheckRow key={place} check={check} />
        ))}
      </ul>
    </>
  );
}

function CheckRow({ check }: { readonly check: Check }) {
  const level = LEVELS[check.level];
  return (
    <li className={styles.result}>
      <span className={level.className}>
        {level.sign} <span className="visually-hidden">{level.word}</span> {check.check}
      </span>
      <span>
        {check.detail}
        {check.hint ? <span className="quiet"> {check.hint}</span> : null}
      </span>
    </li>
  );
}
