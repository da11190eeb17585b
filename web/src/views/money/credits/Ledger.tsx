import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Button } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Table } from "~/design/Table";
import { When } from "~/design/When";
import { UNKNOWN } from "~/text/format";
import { change } from "./amounts";
import { ledgerQuery } from "./queries";

const KINDS: Readonly<Record<string, string>> = {
  GRANT: "Gift",
  TOP_UP: "Top-up",
  REWARD: "Reward",
  ADJUSTMENT: "Correction",
  REFUND: "Refund",
  HOLD: "Held",
  SETTLEMENT: "Charged",
  RELEASE: "Returned",
  EXPIRY: "Expired",
};

/** Every change of one account, newest first. */
export function Ledger({ user, points }: { readonly user: string; readonly points: number | null }) {
  const { data, error, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(ledgerQuery(user));
  if (error && !data) return <ProblemNote problem={error} />;
  if (!data) return <Loading what="the statement" height={160} />;
  const entries = data.pages.flatMap((page) => page.items);
  if (entries.length === 0) return <p className="quiet">Nothing has changed in this account yet.</p>;
  return (
    <>
      <Table label={`Statement of ${user}`}>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">What</th>
            <th scope="col" data-figure>
              To spend
            </th>
            <th scope="col" data-figure>
              Held
            </th>
            <th scope="col">Training</th>
            <th scope="col">Reason</th>
            <th scope="col">By</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.seq}>
              <td>
                <When at={entry.at} />
              </td>
              <td>{KINDS[entry.kind] ?? entry.kind.toLowerCase()}</td>
              <td data-figure>{entry.balance_micros === 0 ? UNKNOWN : change(entry.balance_micros, points)}</td>
              <td data-figure>{entry.held_micros === 0 ? UNKNOWN : change(entry.held_micros, points)}</td>
              <td>
                {entry.job ? (
                  <Link to="/jobs/$job" params={{ job: entry.job }} className="mono">
                    {entry.job}
                  </Link>
                ) : (
                  UNKNOWN
                )}
              </td>
              <td>{entry.note || UNKNOWN}</td>
              <td>{entry.actor}</td>
            </tr>
          ))}
        </tbody>
      </Table>
      {error ? <ProblemNote problem={error} /> : null}
      {hasNextPage ? (
        <div>
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Older entries
          </Button>
        </div>
      ) : null}
    </>
  );
}
