import type { components } from "~/api/schema";
import { Loading } from "~/design/Empty";
import { Table } from "~/design/Table";
import { dollars } from "~/text/format";
import styles from "./MoneyView.module.css";
import type { Range } from "./queries";

const RANGES: readonly { readonly range: Range; readonly label: string; readonly words: string }[] = [
  { range: "2d", label: "2 days", words: "by hour, yesterday and today" },
  { range: "30d", label: "30 days", words: "by day, the last 30 days" },
  { range: "90d", label: "90 days", words: "by day, the last 90 days" },
];

interface Props {
  readonly costs: components["schemas"]["CostsOverTimeDocument"] | undefined;
  readonly range: Range;
  readonly onRange: (range: Range) => void;
}

/** What machines cost in each hour or day, as bars; the same as a table for those who want the figures. */
export function CostBars({ costs, range, onRange }: Props) {
  const chosen = RANGES.find((each) => each.range === range);
  const parts = costs?.parts ?? [];
  const most = Math.max(0, ...parts.map((part) => part.amount_usd));
  return (
    <section className={styles.block} aria-labelledby="over-time">
      <div className={styles.head}>
        <h2 id="over-time">Over time</h2>
        <p className="quiet">
          {costs ? `${dollars(costs.total_usd)} ${chosen?.words ?? ""}` : ""}
          {most > 0 ? `; at most ${dollars(most)} in one ${range === "2d" ? "hour" : "day"}` : ""}
        </p>
        <fieldset className={styles.choices}>
          <legend className="visually-hidden">Time</legend>
          {RANGES.map((each) => (
            <label key={each.range} className={styles.choice}>
              <input type="radio" name="range" checked={each.range === range} onChange={() => onRange(each.range)} />
              {each.label}
            </label>
          ))}
        </fieldset>
      </div>
      {costs ? (
        <>
          <div className={styles.bars} role="img" aria-label={`Costs ${chosen?.words ?? ""}`}>
            {parts.map((part) => (
              <div
                key={part.start}
                className={styles.column}
                title={`${nameOf(part.start, range)}: ${dollars(part.amount_usd)}`}
              >
                <span style={{ height: most > 0 ? `${(part.amount_usd / most) * 100}%` : 0 }} />
              </div>
            ))}
          </div>
          <div className={styles.ends} aria-hidden>
            <span>{parts[0] ? nameOf(parts[0].start, range) : ""}</span>
            <span>{range === "2d" ? "now" : "today"}</span>
          </div>
          {most > 0 ? <Figures parts={parts} range={range} /> : null}
        </>
      ) : (
        <Loading what="the costs over time" height={136} />
      )}
    </section>
  );
}

function Figures({ parts, range }: { readonly parts: NonNullable<Props["costs"]>["parts"]; readonly range: Range }) {
  return (
    <details>
      <summary>As a table</summary>
      <Table label="Costs over time">
        <thead>
          <tr>
            <th scope="col">{range === "2d" ? "Hour" : "Day"}</th>
            <th scope="col" data-figure>
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {parts
            .filter((part) => part.amount_usd > 0)
            .map((part) => (
              <tr key={part.start}>
                <th scope="row">{nameOf(part.start, range)}</th>
                <td data-figure>{dollars(part.amount_usd)}</td>
              </tr>
            ))}
        </tbody>
      </Table>
    </details>
  );
}

function nameOf(start: string, range: Range): string {
  const at = new Date(start);
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return range === "2d" ? `${day}, ${String(at.getHours()).padStart(2, "0")}:00` : day;
}
