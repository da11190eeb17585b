import type { Ranking } from "~/api/documents";
import { asProblem } from "~/api/problem";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { dollars, dollarsPerHour, duration, memoryOf } from "~/text/format";
import { sentence } from "~/text/sentence";
import styles from "./CostColumn.module.css";
import type { Forecast } from "./forecast";
import { NoMachine } from "./NoMachine";
import { Offers } from "./Offers";
import { hoursWords, limitWords, rangeOf } from "./words";

interface Props {
  readonly forecast: Forecast | null;
  /** Why there is none; null: it is on its way. */
  readonly problem: unknown;
  readonly isOld: boolean;
  readonly isWaiting: boolean;
  readonly ranking: Ranking | undefined;
  readonly maxPrice: string;
  readonly onMaxPrice: (price: string) => void;
  readonly onRetry: () => void;
  readonly images: number;
  readonly isAssumed: boolean;
  readonly children: React.ReactNode;
}

/** What it will cost, how long it takes, whether it fits, and what ends it. */
export function CostColumn(props: Props) {
  const { forecast, problem, ranking } = props;
  return (
    <aside className={styles.column} aria-label="Cost">
      <h2>What it will take</h2>
      {problem ? (
        <Refusal {...props} />
      ) : forecast ? (
        <Figures forecast={forecast} isOld={props.isOld} />
      ) : props.isWaiting ? (
        <Loading what="the estimate" height={220} />
      ) : (
        <p className="quiet">Correct the marked fields to see the price.</p>
      )}
      {props.isAssumed && forecast ? (
        <p className="quiet">For {props.images} pictures, until there is a dataset.</p>
      ) : null}
      {props.children}
      {ranking && ranking.offers.length > 0 && !problem ? <Offers offers={ranking.offers} /> : null}
    </aside>
  );
}

function Refusal({ problem, ranking, maxPrice, onMaxPrice, onRetry }: Props) {
  const { message, kind } = asProblem(problem);
  if (kind !== "NoOfferFits") return <ProblemNote problem={problem} onRetry={onRetry} />;
  return <NoMachine message={message} ranking={ranking} maxPrice={maxPrice} onMaxPrice={onMaxPrice} />;
}

function Figures({ forecast, isOld }: { readonly forecast: Forecast; readonly isOld: boolean }) {
  const { cost, hours, limits } = forecast;
  return (
    <div className={isOld ? styles.old : styles.figures} aria-busy={isOld || undefined}>
      <p className={styles.number}>
        {cost ? (cost.high === 0 ? "Free" : `about ${dollars(cost.expected)}`) : "No price"}
      </p>
      <dl className={styles.facts}>
        {cost && cost.high > 0 ? (
          <>
            <dt>Cost</dt>
            <dd>{rangeOf(dollars(cost.low), dollars(cost.high))}</dd>
          </>
        ) : null}
        <dt>Time</dt>
        <dd>
          about {duration(hours.expected * 3600)} <span className="quiet">({hoursWords(hours)})</span>
        </dd>
        <dt>Machine</dt>
        <dd>
          {forecast.gpu ?? "no GPU"} at {dollarsPerHour(forecast.pricePerHour)}
          {forecast.pricePerHour ? `, at most ${dollarsPerHour(limits.max_price_per_hour_usd)}` : ""}
        </dd>
        <dt>GPU memory</dt>
        <dd>
          <Memory forecast={forecast} />
        </dd>
        <dt>Limit</dt>
        <dd>
          {limitWords(limits)}
          {limits.max_spend_note ? <span className="quiet"> The money limit is {limits.max_spend_note}.</span> : null}
        </dd>
      </dl>
      {forecast.notes.length > 0 ? (
        <ul className={styles.notes} aria-label="Notes">
          {forecast.notes.map((note) => (
            <li key={note}>{sentence(note.replace(/^warning: /, ""))}</li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

function Memory({ forecast }: { readonly forecast: Forecast }) {
  const { memory, gpuGib, memoryBasis } = forecast;
  if (!memory) return <span className="quiet">not predicted: {memoryBasis || "nothing is known about it"}</span>;
  const fits = gpuGib === null || memory.high <= gpuGib;
  return (
    <>
      <span className={fits ? styles.good : styles.attention}>{fits ? "✓ fits: " : "▲ may not fit: "}</span>
      about {memoryOf(memory.expected, gpuGib)} <span className="quiet">({memoryBasis})</span>
    </>
  );
}
