import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { costsOverTimeQuery } from "~/api/overview";
import { dollars } from "~/text/format";
import styles from "./CostChart.module.css";

const [WIDTH, HEIGHT] = [240, 32];

/** What machines cost on each of the last days, as bars: whether spending grows is seen without reading a number. */
export function CostChart() {
  const { data } = useQuery(costsOverTimeQuery("day"));
  const parts = data?.parts ?? [];
  const most = Math.max(...parts.map((part) => part.amount_usd), 0);
  const width = WIDTH / Math.max(1, parts.length);
  const words = data
    ? `Cost of the last ${parts.length} days: ${dollars(data.total_usd)} in all, at most ${dollars(most)} in a day`
    : "Cost of the last days";
  return (
    <figure className={styles.chart}>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words}>
        {parts.map((part, place) => {
          const height = part.amount_usd === 0 ? 0 : Math.max(1, (part.amount_usd / most) * (HEIGHT - 1));
          return (
            <rect key={part.start} x={place * width} y={HEIGHT - height} width={Math.max(1, width - 2)} height={height}>
              <title>{`${dayOf(part.start)}: ${dollars(part.amount_usd)}`}</title>
            </rect>
          );
        })}
        <line x1={0} x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
      </svg>
      <figcaption>
        {data ? (
          <Link to="/money">
            {dollars(data.total_usd)} in {parts.length} days
          </Link>
        ) : (
          " "
        )}
      </figcaption>
    </figure>
  );
}

function dayOf(start: string): string {
  return new Date(start).toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" });
}
