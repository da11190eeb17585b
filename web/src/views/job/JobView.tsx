import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { jobQuery } from "~/api/queries";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { AnalysisPanel } from "./analysis/AnalysisPanel";
import { Samples } from "./samples/Samples";
import { CheckpointsTab } from "./tabs/CheckpointsTab";
import { CostTab } from "./tabs/CostTab";
import { EventsTab } from "./tabs/EventsTab";
import { LogTab } from "./tabs/LogTab";
import { PlanTab } from "./tabs/PlanTab";

export function JobView() {
  const { job: id } = useParams({ strict: false });
  const { data: job, error, refetch } = useQuery(jobQuery(id ?? ""));
  if (error && !job) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!job) return <Loading what="the training" height={480} />;
  return (
    <>
      <h1>{job.name}</h1>
      <Samples job={job} />
      <LogTab job={job} />
      <EventsTab job={job} />
      <CheckpointsTab job={job} />
      <CostTab job={job} />
      <PlanTab job={job} />
      <AnalysisPanel job={job} />
    </>
  );
}
