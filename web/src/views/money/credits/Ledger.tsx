import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Table } from "~/design/Table";
import { When } from "~/design/When";
import { count, UNKNOWN } from "~/text/format";
import { change } from "./amounts";
import { ledgerQuery } from "./queries";

const PAGE = 20;
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
  const [most, setMost] = useState(PAGE);
  const { data, error } = useQuery(ledgerQuery(user));
  if (error) return <ProblemNote problem={error} />;
  if (!data) return <Loading what="the statement" height={160} />;
  if (data.entries.length === 0) return <p className="quiet">Nothing has changed in this account yet.</p>;
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
          {data.entries.slice(0, most).map((entry) => (
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
      {data.entries.length > most ? (
        <div>
          <Button onClick={() => setMost(most + 100)}>Older entries ({count(data.entries.length - most)})</Button>
        </div>
      ) : null}
      {data.isWhole ? null : (
        <p className="quiet">Only the oldest 10,000 entries are shown; `stationmaster credits ledger` has them all.</p>
      )}
    </>
  );
}
