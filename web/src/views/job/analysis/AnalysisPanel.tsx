import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Analysis, Job } from "~/api/documents";
import { sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useSay } from "~/design/Toasts";
import { sentence } from "~/text/sentence";
import styles from "./Analysis.module.css";
import { ApplySettings } from "./ApplySettings";
import { LogErrors } from "./LogErrors";
import { MemoryTimeline } from "./MemoryTimeline";
import { NotAnalysed } from "./NotAnalysed";
import { analysisSoFarQuery, analysisWithOffersQuery, storedAnalysisQuery, useAnalyseNow } from "./queries";
import { RecommendationCard } from "./RecommendationCard";
import { SummaryCard } from "./SummaryCard";

/** What went wrong or was wasted, and what to change: decisions that rest on what was measured. */
export function AnalysisPanel({ job }: { readonly job: Job }) {
  const [wantsSoFar, setWantsSoFar] = useState(false);
  const [wantsOffers, setWantsOffers] = useState(false);
  const stored = useQuery(storedAnalysisQuery(job));
  const soFar = useQuery(analysisSoFarQuery(job, wantsSoFar));
  const offers = useQuery(analysisWithOffersQuery(job, wantsOffers));
  const analyseNow = useAnalyseNow(job);
  const mayTrain = useQuery(sessionQuery).data?.rights.includes("train") ?? false;
  const say = useSay();
  const analyse = () => analyseNow.mutate(undefined, { onSuccess: () => say(`Analysed ${job.name}`) });

  const live = wantsSoFar ? soFar.data : undefined;
  const analysis = (wantsOffers ? offers.data : undefined) ?? live ?? stored.data;
  const problem = analyseNow.error ?? offers.error ?? soFar.error ?? (stored.data ? null : stored.error);
  return (
    <div className={styles.panel}>
      <div className={styles.head}>
        <h2>Performance Analysis</h2>
        {analysis && job.state === "ENDED" ? (
          <>
            <Button busy={offers.isFetching} disabled={wantsOffers} onClick={() => setWantsOffers(true)}>
              Compare with what can be rented now
            </Button>
            {mayTrain ? (
              <Button busy={analyseNow.isPending} onClick={analyse}>
                Analyse again
              </Button>
            ) : null}
            <ApplySettings job={job} analysis={stored.data} mayTrain={mayTrain} />
          </>
        ) : null}
      </div>
      {problem ? (
        <ProblemNote problem={problem} onRetry={stored.isError ? () => void stored.refetch() : undefined} />
      ) : null}
      <Older job={job} analysis={stored.data} onAnalyse={mayTrain ? analyse : undefined} />
      {wantsOffers && offers.data ? (
        <p className={styles.notice}>
          Compared with what can be rented now; this comparison is not stored.
          <Button kind="quiet" onClick={() => setWantsOffers(false)}>
            Show the stored analysis
          </Button>
        </p>
      ) : null}
      {live ? (
        <p className={styles.notice}>
          The training still runs: this is based on what was measured so far, and may change.
          <Button kind="quiet" busy={soFar.isFetching} onClick={() => void soFar.refetch()}>
            Refresh
          </Button>
        </p>
      ) : null}
      {analysis ? (
        <Findings job={job} analysis={analysis} />
      ) : stored.isLoading || (wantsSoFar && soFar.isLoading) ? (
        <Loading what="the analysis" height={320} />
      ) : job.analysed_attempt === null ? (
        <NotAnalysed
          job={job}
          mayTrain={mayTrain}
          busy={analyseNow.isPending}
          onAnalyse={analyse}
          onLookNow={() => setWantsSoFar(true)}
        />
      ) : null}
    </div>
  );
}

function Findings({ job, analysis }: { readonly job: Job; readonly analysis: Analysis }) {
  const { recommendations } = analysis;
  return (
    <>
      <SummaryCard analysis={analysis} job={job} />
      <section aria-labelledby="recommendations">
        <h3 id="recommendations">Recommendations</h3>
        {recommendations.length === 0 ? (
          <p className="quiet">{nothingToChange(analysis)}</p>
        ) : (
          <ol className={styles.cards}>
            {recommendations.map((recommendation, place) => (
              <RecommendationCard
                key={`${recommendation.rule} ${recommendation.config_path}`}
                job={job}
                number={place + 1}
                recommendation={recommendation}
                timeline={analysis.metrics_timeline}
              />
            ))}
          </ol>
        )}
      </section>
      <MemoryTimeline job={job} analysis={analysis} />
      <LogErrors errors={analysis.log_errors} total={analysis.summary.total_memory_gb} />
      {analysis.notes.length > 0 ? (
        <section aria-labelledby="not-judged">
          <h3 id="not-judged">What could not be judged</h3>
          <ul className={styles.notes}>
            {analysis.notes.map((note) => (
              <li key={note}>{sentence(note)}</li>
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}

function nothingToChange(analysis: Analysis): string {
  return analysis.health === "unknown"
    ? "Too little was measured to judge this training."
    : "Nothing to change: no rule found memory, time or money that was wasted.";
}

interface OlderProps {
  readonly job: Job;
  readonly analysis: Analysis | undefined;
  readonly onAnalyse: (() => void) | undefined;
}

/** Says that the analysis is of an attempt before the last one. */
function Older({ job, analysis, onAnalyse }: OlderProps) {
  if (!analysis || analysis.attempt >= job.attempt) return null;
  return (
    <p className={styles.notice}>
      This is the analysis of attempt {analysis.attempt}; the training is in attempt {job.attempt}.
      {onAnalyse && job.state === "ENDED" ? <Button onClick={onAnalyse}>Analyse attempt {job.attempt}</Button> : null}
    </p>
  );
}
