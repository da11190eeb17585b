import type { Job, Recommendation, TimelinePoint } from "~/api/documents";
import { CopyText } from "~/design/CopyText";
import { Badge } from "~/design/StateMark";
import { severityLook } from "~/text/health";
import styles from "./Analysis.module.css";
import { Change } from "./Change";
import { EvidenceChart } from "./EvidenceChart";
import { EvidenceTable } from "./EvidenceTable";

interface Props {
  readonly job: Job;
  readonly number: number;
  readonly recommendation: Recommendation;
  readonly timeline: readonly TimelinePoint[];
}

const SURE: Record<string, string> = {
  high: "High confidence: measured in this run",
  medium: "Medium confidence: derived from what was measured",
  low: "Low confidence: likely by experience",
};

/** One change for the next run: what, why, and what it is expected to gain. */
export function RecommendationCard({ job, number, recommendation, timeline }: Props) {
  const look = severityLook(recommendation.severity);
  return (
    <li className={`${styles.card} ${styles[look.tone]}`}>
      <div className={styles.cardHead}>
        <Badge tone={look.tone}>
          <span aria-hidden>{look.mark}</span> {look.word}
        </Badge>
        <h4>
          <span className="visually-hidden">Recommendation {number}: </span>
          {recommendation.title}
        </h4>
      </div>
      <div className={styles.cardBody}>
        <div className={styles.cardMain}>
          <Change recommendation={recommendation} />
          <p>{recommendation.action}</p>
          <p>
            <span className="quiet">Expected: </span>
            {recommendation.impact}
          </p>
          <p className={styles.path}>
            <CopyText text={recommendation.config_path} what="config path" />
          </p>
        </div>
        <details className={styles.evidence} open={recommendation.severity !== "info"}>
          <summary>What was measured</summary>
          <EvidenceTable evidence={recommendation.evidence} />
          <EvidenceChart job={job} recommendation={recommendation} timeline={timeline} />
          <p className="quiet">
            {[SURE[recommendation.confidence] ?? recommendation.confidence, recommendation.basis]
              .filter(Boolean)
              .join("; ")}
            .
          </p>
        </details>
      </div>
    </li>
  );
}
