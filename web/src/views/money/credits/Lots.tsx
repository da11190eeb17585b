import type { Account } from "~/api/documents";
import { Table } from "~/design/Table";
import { When } from "~/design/When";
import { credits } from "./amounts";

/** Credits that came in together, in the order in which they are spent. */
export function Lots({ lots, points }: { readonly lots: Account["lots"]; readonly points: number | null }) {
  const left = (lots ?? []).filter((lot) => lot.remaining_micros > 0);
  if (left.length === 0) return <p className="quiet">No credits are left.</p>;
  return (
    <Table label="Credits by when they expire">
      <thead>
        <tr>
          <th scope="col">Spent in this order</th>
          <th scope="col" data-figure>
            Left
          </th>
          <th scope="col" data-figure>
            Of
          </th>
          <th scope="col">Expires</th>
        </tr>
      </thead>
      <tbody>
        {left.map((lot, place) => (
          <tr key={lot.id}>
            <th scope="row">
              {place + 1}. from <When at={lot.at} />
            </th>
            <td data-figure>{credits(lot.remaining_micros, points)}</td>
            <td data-figure>{credits(lot.amount_micros, points)}</td>
            <td>{lot.expires_at ? <When at={lot.expires_at} /> : "never"}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
