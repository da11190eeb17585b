import { useQuery } from "@tanstack/react-query";
import type { Job, JobEvent } from "~/api/documents";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useAddressValue } from "~/frame/address";
import { clock, counted, exactly } from "~/text/format";
import { eventsQuery } from "../queries";
import styles from "./EventsTab.module.css";
import { GROUP_NAMES, GROUPS, groupOf, weightOf } from "./eventGroups";
import tab from "./Tab.module.css";

const MARKS = { bad: "✕", attention: "▲", good: "✓" } as const;
const WORDS = { bad: "Failure", attention: "Attention", good: "Success" } as const;

export function EventsTab({ job }: { readonly job: Job }) {
  const { data: events, error, refetch } = useQuery(eventsQuery(job.id));
  const [group, setGroup] = useAddressValue("about");
  const [order, setOrder] = useAddressValue("order");
  if (error && !events) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!events) return <Loading what="the events" height={480} />;

  const chosen = GROUPS.find((one) => one === group);
  const found = events.filter((event) => chosen === undefined || groupOf(event) === chosen);
  const shown = order === "oldest" ? found : found.toReversed();
  return (
    <div className={tab.tab}>
      <div className={tab.bar}>
        <label>
          About{" "}
          <select value={chosen ?? ""} onChange={(event) => setGroup(event.target.value || null)}>
            <option value="">everything</option>
            {GROUPS.map((one) => (
              <option key={one} value={one}>
                {GROUP_NAMES[one]} ({events.filter((event) => groupOf(event) === one).length})
              </option>
            ))}
          </select>
        </label>
        <label>
          Order{" "}
          <select
            value={order === "oldest" ? "oldest" : "newest"}
            onChange={(event) => setOrder(event.target.value === "oldest" ? "oldest" : null)}
          >
            <option value="newest">newest first</option>
            <option value="oldest">oldest first</option>
          </select>
        </label>
        <span className="quiet" role="status">
          {counted(shown.length, "event")}
        </span>
      </div>
      {shown.length === 0 ? (
        <Empty title="No events of this kind" />
      ) : (
        <ol className={styles.events}>
          {shown.map((event) => (
            <EventRow key={event.version} event={event} />
          ))}
        </ol>
      )}
    </div>
  );
}

function EventRow({ event }: { readonly event: JobEvent }) {
  const weight = weightOf(event);
  const at = Date.parse(event.at); // as a clock shows it: what matters is what came before what, and how long it took
  return (
    <li className={weight === null ? styles.event : `${styles.event} ${styles[weight]}`}>
      <time className={styles.when} dateTime={event.at} title={exactly(at)}>
        {clock(at)}
      </time>
      <span className={styles.mark}>
        {weight === null ? (
          <span aria-hidden>·</span>
        ) : (
          <>
            <span aria-hidden>{MARKS[weight]}</span>
            <span className="visually-hidden">{WORDS[weight]}: </span>
          </>
        )}
      </span>
      <span className={styles.sentence}>{event.sentence}</span>
    </li>
  );
}
