import { Link } from "@tanstack/react-router";
import { CopyText } from "~/design/CopyText";
import { Empty } from "~/design/Empty";
import styles from "./Fleet.module.css";

/** Nothing was trained yet: three ways to begin. */
export function EmptyFleet({ mayTrain }: { readonly mayTrain: boolean }) {
  if (!mayTrain) {
    return (
      <Empty title="No training yet">
        <p>Your token is read-only. Trainings appear here once one has been started.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No training yet">
      <p>Three ways to begin:</p>
      <ol className={styles.ways}>
        <li>
          <h3>See one run in a minute, without a GPU or a cent</h3>
          <p>The demo trains a tiny model on this computer. Run it in a terminal:</p>
          <CopyText text="stationmaster demo" what="command" />
        </li>
        <li>
          <h3>Train on your own pictures or texts</h3>
          <p>
            <Link to="/new">New training</Link> takes a recipe and a dataset, and says the price before anything is
            rented.
          </p>
        </li>
        <li>
          <h3>Look at what can be trained</h3>
          <p>
            <Link to="/recipes">Recipes</Link> name the trainer, what it needs, and its parameters.
          </p>
        </li>
      </ol>
    </Empty>
  );
}
