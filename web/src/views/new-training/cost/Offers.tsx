import type { Offer } from "~/api/documents";
import { dollars, dollarsPerHour, percent } from "~/text/format";
import styles from "./Offers.module.css";

const SHOWN = 3;

/** The best machines that can be rented now. Which one it gets is decided when it starts, within the price limit. */
export function Offers({ offers }: { readonly offers: readonly Offer[] }) {
  return (
    <section aria-labelledby="offers" className={styles.offers}>
      <h3 id="offers">Best offers now</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">Machine</th>
            <th scope="col" className={styles.figure}>
              Per hour
            </th>
            <th scope="col" className={styles.figure}>
              In all
            </th>
          </tr>
        </thead>
        <tbody>
          {offers.slice(0, SHOWN).map((offer) => (
            <tr key={`${offer.provider} ${offer.id}`}>
              <td>
                {offer.gpus > 1 ? `${offer.gpus} × ` : ""}
                {offer.gpu ?? "no GPU"}
                <span className={styles.place}>
                  {[
                    offer.region ?? offer.provider,
                    offer.reliability === null ? null : `${percent(offer.reliability * 100)} reliable`,
                    offer.bid_per_hour_usd ? "can be outbid" : null,
                  ]
                    .filter(Boolean)
                    .join(" · ")}
                </span>
              </td>
              <td className={styles.figure}>{dollarsPerHour(offer.price_per_hour_usd)}</td>
              <td className={styles.figure}>{dollars(offer.job_cost_usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
