import type { Ranking } from "~/api/documents";
import { Button } from "~/design/Button";
import { counted, dollarsPerHour } from "~/text/format";
import styles from "./NoMachine.module.css";

interface Props {
  readonly message: string;
  readonly ranking: Ranking | undefined;
  readonly maxPrice: string;
  readonly onMaxPrice: (price: string) => void;
}

/** No machine fits now: why, how many for each reason, and the cheapest that a higher limit would allow. */
export function NoMachine({ message, ranking, maxPrice, onMaxPrice }: Props) {
  const groups = ranking?.left_out_by_reason ?? [];
  const dear = groups.find((group) => group.too_dear);
  const price = dear ? Math.ceil(dear.from_price_per_hour_usd * 100) / 100 : null;
  return (
    <div className={styles.none} role="status">
      <p className={styles.title}>▲ No machine fits now</p>
      <p>{message}.</p>
      {groups.length > 0 ? (
        <ul>
          {groups.map((group) => (
            <li key={group.why}>
              {counted(group.count, "machine")}: {group.why}, from {dollarsPerHour(group.from_price_per_hour_usd)}
            </li>
          ))}
        </ul>
      ) : null}
      {price !== null && maxPrice !== "" ? (
        <div>
          <Button onClick={() => onMaxPrice(price.toFixed(2))}>Raise the limit to {dollarsPerHour(price)}</Button>
        </div>
      ) : null}
      <p className="quiet">Raise the price limit, ask for less memory or disk, or try again later.</p>
    </div>
  );
}
