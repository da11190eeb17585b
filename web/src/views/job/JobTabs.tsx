/** Log, events, checkpoints, cost, plan and analysis of a training. Each is fetched when it is first opened. */
import { lazy, Suspense } from "react";
import type { Job } from "~/api/documents";
import { Loading } from "~/design/Empty";
import { type Tab, Tabs } from "~/design/Tabs";
import styles from "./JobView.module.css";
import { ABOUT, usePicture } from "./search";
import { useLinkedPlace } from "./useLinkedPlace";

const LogTab = lazy(() => import("./tabs/LogTab").then(({ LogTab: content }) => ({ default: content })));
const EventsTab = lazy(() => import("./tabs/EventsTab").then(({ EventsTab: content }) => ({ default: content })));
const CheckpointsTab = lazy(() =>
  import("./tabs/CheckpointsTab").then(({ CheckpointsTab: content }) => ({ default: content })),
);
const CostTab = lazy(() => import("./tabs/CostTab").then(({ CostTab: content }) => ({ default: content })));
const PlanTab = lazy(() => import("./tabs/PlanTab").then(({ PlanTab: content }) => ({ default: content })));
const AnalysisPanel = lazy(() =>
  import("./analysis/AnalysisPanel").then(({ AnalysisPanel: content }) => ({ default: content })),
);

const NAMES = ["log", "events", "checkpoints", "cost", "plan", "analysis"] as const;
type Name = (typeof NAMES)[number];

export function JobTabs({ job }: { readonly job: Job }) {
  const [{ tab }, change] = usePicture();
  const tabs: Record<Name, Tab<Name>> = {
    log: { name: "log", label: "Log", content: <LogTab job={job} /> },
    events: { name: "events", label: "Events", content: <EventsTab job={job} /> },
    checkpoints: { name: "checkpoints", label: "Checkpoints", content: <CheckpointsTab job={job} /> },
    cost: { name: "cost", label: "Cost", content: <CostTab job={job} /> },
    plan: { name: "plan", label: "Plan", content: <PlanTab job={job} /> },
    analysis: { name: "analysis", label: "Analysis", content: <AnalysisPanel job={job} /> },
  };
  // A running training is looked at through its log; of one that has ended people ask what to change.
  const hasTrained = job.state === "ENDED" && job.health !== null;
  const order: Name[] = hasTrained ? ["analysis", ...NAMES.filter((name) => name !== "analysis")] : [...NAMES];
  const chosen = NAMES.find((name) => name === tab) ?? order[0] ?? "log";
  const shown = order.map((name) => ({
    ...tabs[name],
    content: <Suspense fallback={<Loading what={name} height={320} />}>{tabs[name].content}</Suspense>,
  }));
  const place = useLinkedPlace(ABOUT);
  return (
    <div id={ABOUT} ref={place} className={styles.about}>
      <Tabs tabs={shown} chosen={chosen} onChoose={(name) => change({ tab: name })} label="About the training" />
    </div>
  );
}
