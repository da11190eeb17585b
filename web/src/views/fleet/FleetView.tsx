/** All trainings as one live table: is it running, is it stuck, what does it cost. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { overviewQuery } from "~/api/overview";
import { sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useKeys } from "~/frame/keys";
import { useTitle } from "~/frame/title";
import { counted } from "~/text/format";
import { CostChart } from "./CostChart";
import { EmptyFleet } from "./EmptyFleet";
import { Filters } from "./Filters";
import styles from "./Fleet.module.css";
import { FleetTable } from "./FleetTable";
import { filtered, grouped, sorted } from "./rows";
import { SummaryLine } from "./SummaryLine";
import { Unexplained } from "./Unexplained";
import { useColumns, useWindowWidth } from "./useColumns";
import { useFleetAddress } from "./useFleetAddress";

const NARROW = 600;
const MOST_COMPARED = 8;

export function FleetView() {
  useTitle("Trainings");
  const { data, error, refetch } = useQuery(overviewQuery);
  const { data: session } = useQuery(sessionQuery);
  const address = useFleetAddress();
  const columns = useColumns();
  const navigate = useNavigate();
  const isNarrow = useWindowWidth() <= NARROW;
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState<string | null>(null);

  const all = data?.rows ?? [];
  const shown = sorted(filtered(all, address.text, address.chosen), address.sort);
  const groups = grouped(shown, address.group);
  const open = groups.filter((group) => !address.closed.includes(group.name)).flatMap((group) => group.rows);
  const mayTrain = session?.rights.includes("train") ?? false;
  const mayManage = session?.rights.includes("manage") ?? false;

  const select = useCallback((id: string) => {
    setSelected((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);
  const compared = all.filter((row) => selected.has(row.id)).map((row) => row.id);
  const canCompare = compared.length >= 2 && compared.length <= MOST_COMPARED;
  const compare = () => {
    if (canCompare) void navigate({ href: `/compare?${new URLSearchParams(compared.map((id) => ["jobs", id]))}` });
  };
  const move = (by: number) => {
    const place = open.findIndex((row) => row.id === current);
    const next = open[place < 0 ? (by > 0 ? 0 : open.length - 1) : Math.min(open.length - 1, Math.max(0, place + by))];
    if (next) setCurrent(next.id);
  };
  useKeys("Trainings", [
    { keys: "j", does: "Next training", run: () => move(1) },
    { keys: "k", does: "Previous training", run: () => move(-1) },
    { keys: "ArrowDown", does: "Next training", run: () => move(1) },
    { keys: "ArrowUp", does: "Previous training", run: () => move(-1) },
    {
      keys: "Enter",
      does: "Open the training",
      run: () => current && void navigate({ to: "/jobs/$job", params: { job: current } }),
    },
    { keys: "x", does: "Select the training", run: () => current && select(current) },
    { keys: "c", does: "Compare the selected trainings", run: compare },
  ]);

  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  return (
    <>
      <div className={styles.head}>
        <div className={styles.title}>
          <h1>Trainings</h1>
          {mayTrain ? (
            <Link to="/new" className={styles.new}>
              + New training
            </Link>
          ) : null}
        </div>
        {data ? <SummaryLine summary={data.summary} /> : <Loading what="the trainings" height={44} />}
        <CostChart />
      </div>
      {mayManage ? <Unexplained /> : null}
      {!data ? <Loading what="the trainings" height={480} /> : null}
      {data && all.length === 0 ? <EmptyFleet mayTrain={mayTrain} /> : null}
      {all.length > 0 ? <Filters rows={all} address={address} columns={columns} isNarrow={isNarrow} /> : null}
      {selected.size > 0 ? (
        <div className={styles.picked} role="status">
          <span>{counted(compared.length, "training")} selected</span>
          <Button disabled={!canCompare} onClick={compare}>
            Compare
          </Button>
          <Button kind="quiet" onClick={() => setSelected(new Set())}>
            Select none
          </Button>
          {canCompare ? null : <span className="quiet">select two to {MOST_COMPARED} to compare them</span>}
        </div>
      ) : null}
      {all.length > 0 && shown.length === 0 ? (
        <Empty title="No training matches">
          <Button
            onClick={() =>
              address.change({ q: null, state: null, recipe: null, gpu: null, owner: null, provider: null })
            }
          >
            Show all {counted(all.length, "training")}
          </Button>
        </Empty>
      ) : null}
      {shown.length > 0 ? (
        <FleetTable
          groups={groups}
          address={address}
          columns={columns.columns}
          selected={selected}
          current={current}
          mayTrain={mayTrain}
          isNarrow={isNarrow}
          onSelect={select}
          onFocus={setCurrent}
        />
      ) : null}
    </>
  );
}
