import { useInfiniteQuery } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import type { Session } from "~/api/documents";
import { Button } from "~/design/Button";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Table } from "~/design/Table";
import { When } from "~/design/When";
import { UNKNOWN } from "~/text/format";
import styles from "../Parts.module.css";

const PAGE = 50;

/** Who changed what over the API, newest first. */
export function AuditSection({ session }: { readonly session: Session }) {
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ["audit"],
    queryFn: ({ pageParam }) =>
      answer(
        api.GET("/api/audit", {
          params: { query: { limit: PAGE, ...(pageParam === null ? {} : { after: pageParam }) } },
        }),
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (last) => (last.next === null || last.next === undefined ? undefined : Number(last.next)),
  });
  const entries = (data?.pages ?? []).flatMap((page) => page.items);
  return (
    <>
      <h2>Audit</h2>
      <p className="quiet">
        {session.role === "admin"
          ? "Every request that changed something or was refused."
          : "Your own requests that changed something or were refused."}
      </p>
      {error ? <ProblemNote problem={error} onRetry={() => void refetch()} /> : null}
      {!data && !error ? <Loading what="the audit log" height={320} /> : null}
      {data && entries.length === 0 ? (
        <Empty title="Nothing yet">Changes made through the page or the API are listed here.</Empty>
      ) : null}
      {entries.length > 0 ? (
        <Table label="Audit log">
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Who</th>
              <th scope="col">What</th>
              <th scope="col">About</th>
              <th scope="col">Result</th>
              <th scope="col">From</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <tr key={entry.id}>
                <td>
                  <When at={entry.at} />
                </td>
                <td>
                  {entry.user ?? "unknown"}
                  {entry.token ? <span className="quiet mono"> {entry.token}</span> : null}
                </td>
                <td className="mono">{entry.action}</td>
                <td className="mono">{entry.subject ?? UNKNOWN}</td>
                <td className={entry.status < 400 ? styles.good : styles.bad}>
                  {entry.status < 400 ? "✓ done" : "✕ refused"} ({entry.status})
                </td>
                <td className="mono">{entry.address ?? UNKNOWN}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      ) : null}
      {hasNextPage ? (
        <div className={styles.buttons}>
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Older entries
          </Button>
        </div>
      ) : null}
    </>
  );
}
