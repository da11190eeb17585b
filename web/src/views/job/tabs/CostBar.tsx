import { dollars, percent } from "~/text/format";
import styles from "./CostBar.module.css";
import type { CostPart } from "./costs";

/** A bar of what the money went into; every part also has its name, figure and share in words. */
export function CostBar({ parts }: { readonly parts: readonly CostPart[] }) {
  const total = parts.reduce((sum, part) => sum + part.usd, 0);
  const share = (part: CostPart) => (total > 0 ? (part.usd / total) * 100 : 0);
  return (
    <div className={styles.cost}>
      <div className={styles.bar} aria-hidden>
        {parts.map((part) =>
          part.usd > 0 ? (
            <span key={part.name} className={styles[part.tone]} style={{ width: `${share(part)}%` }} />
          ) : null,
        )}
      </div>
      <dl className={styles.parts}>
        {parts.map((part) => (
          <div key={part.name}>
            <dt>
              <span className={`${styles.swatch} ${styles[part.tone]}`} aria-hidden />
              {part.name}
            </dt>
            <dd>
              {dollars(part.usd)} <span className="quiet">{percent(share(part))}</span>
            </dd>
            <dd className="quiet">{part.meaning}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
