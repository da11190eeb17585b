/** Every machine of every provider, and what a sweep would do with it. */
import { useQuery } from "@tanstack/react-query";
import { instancesQuery } from "~/api/overview";
import { sessionQuery } from "~/api/queries";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useTitle } from "~/frame/title";
import styles from "./Machines.module.css";
import { MachineTable } from "./MachineTable";
import { SweepNow } from "./SweepNow";

export function MachinesView() {
  useTitle("Machines");
  const { data: session } = useQuery(sessionQuery);
  if (!session) return <Loading what="the machines" height={320} />;
  return session.role === "admin" ? <AllMachines mayManage={session.rights.includes("manage")} /> : <OnlyForAdmins />;
}

function AllMachines({ mayManage }: { readonly mayManage: boolean }) {
  const { data, error, refetch } = useQuery(instancesQuery);
  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  return (
    <>
      <div className={styles.head}>
        <h1>Machines</h1>
        {data && mayManage ? <SweepNow sweep={data} /> : null}
      </div>
      {!data ? <Loading what="the machines; every provider is asked" height={320} /> : null}
      {data?.problems.map((problem) => (
        <p key={problem} className={styles.problem} role="alert">
          <span aria-hidden>▲ </span>
          {problem}
        </p>
      ))}
      {data && data.machines.length === 0 ? (
        <Empty title="No machine is rented">
          <p>Nothing bills. A training rents a machine when it starts and releases it when it ends.</p>
        </Empty>
      ) : null}
      {data && data.machines.length > 0 ? <MachineTable machines={data.machines} mayManage={mayManage} /> : null}
    </>
  );
}

function OnlyForAdmins() {
  return (
    <>
      <h1>Machines</h1>
      <Empty title="Only administrators see machines">
        <p>The machine of your own training is on its page.</p>
      </Empty>
    </>
  );
}
