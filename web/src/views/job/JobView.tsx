/** The page of one training. */
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { Job, JobEvent } from "~/api/documents";
import { asProblem } from "~/api/problem";
import { jobQuery } from "~/api/queries";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { JobCharts } from "./charts/JobCharts";
import { useReadings } from "./charts/useReadings";
import { JobHeader } from "./header/JobHeader";
import { JobTabs } from "./JobTabs";
import styles from "./JobView.module.css";
import { WhatToKnow } from "./knowing/WhatToKnow";
import { eventsQuery } from "./queries";
import { Samples } from "./samples/Samples";

const NO_EVENTS: readonly JobEvent[] = [];

export function JobView() {
  const { job: id } = useParams({ strict: false });
  const { data: job, error, refetch } = useQuery(jobQuery(id ?? ""));
  if (error && asProblem(error).status === 404) return <Gone id={id ?? ""} />;
  if (error && !job) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!job) return <Loading what="the training" height={640} />;
  return <Training key={job.id} job={job} />;
}

function Training({ job }: { readonly job: Job }) {
  const { data: events = NO_EVENTS } = useQuery(eventsQuery(job.id));
  const readings = useReadings(job);
  return (
    <>
      <JobHeader job={job} events={events} />
      <div className={styles.body}>
        <WhatToKnow job={job} events={events} readings={readings} />
        <JobCharts job={job} events={events} readings={readings} />
      </div>
      <div className={styles.below}>
        <Samples job={job} />
        <JobTabs job={job} />
      </div>
    </>
  );
}

function Gone({ id }: { readonly id: string }) {
  return (
    <>
      <h1>No such training</h1>
      <Empty title={`There is no training ${id}`}>
        <p>It was removed, or it belongs to another user.</p>
        <p>
          <Link to="/">All trainings</Link>
        </p>
      </Empty>
    </>
  );
}
