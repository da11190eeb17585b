import { Link } from "@tanstack/react-router";
import type { Model } from "~/api/documents";
import { Badge } from "~/design/StateMark";
import { When } from "~/design/When";
import { bytes, count, dollars, figure } from "~/text/format";
import { ModelPicture } from "./ModelPicture";
import styles from "./ModelTable.module.css";
import { placeWord, registrationOf, trainedOf } from "./models";

interface Props {
  readonly models: readonly Model[];
  /** In dollars, by job; a job that was removed has none. */
  readonly costs: ReadonlyMap<string, number>;
}

export function ModelTable({ models, costs }: Props) {
  return (
    <table className={styles.table}>
      <caption className="visually-hidden">Trained models, newest first</caption>
      <thead>
        <tr>
          <th scope="col">
            <span className="visually-hidden">Sample</span>
          </th>
          <th scope="col">Name</th>
          <th scope="col" className={styles.wide}>
            Trained with
          </th>
          <th scope="col" className={`${styles.number} ${styles.wide}`}>
            Steps
          </th>
          <th scope="col" className={styles.number}>
            Loss
          </th>
          <th scope="col" className={`${styles.number} ${styles.wide}`}>
            Size
          </th>
          <th scope="col" className={`${styles.number} ${styles.wide}`}>
            Cost
          </th>
          <th scope="col">Where</th>
          <th scope="col" className={styles.number}>
            When
          </th>
        </tr>
      </thead>
      <tbody>
        {models.map((model) => (
          <Row key={model.slug} model={model} cost={costs.get(model.job_id) ?? null} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ model, cost }: { readonly model: Model; readonly cost: number | null }) {
  const trained = trainedOf(model);
  return (
    <tr>
      <td className={styles.picture}>
        <ModelPicture job={model.job_id} hasSamples={(model.previews ?? []).length > 0} />
      </td>
      <td className={styles.name}>
        <Link to="/models/$model" params={{ model: model.slug }}>
          {model.name}
        </Link>
        {model.complete ? null : <Badge tone="attention">◧ stopped early</Badge>}
        <div className="quiet">
          {model.trigger ? (
            <>
              say <code>{model.trigger}</code>
            </>
          ) : (
            "no trigger word"
          )}
        </div>
      </td>
      <td className={styles.wide}>
        {model.recipe}
        <div className="quiet">{model.base_model ?? model.family ?? ""}</div>
      </td>
      <td className={`${styles.number} ${styles.wide}`}>{count(trained.steps)}</td>
      <td className={styles.number}>{figure(trained.lastLoss)}</td>
      <td className={`${styles.number} ${styles.wide}`}>{bytes(model.size)}</td>
      <td className={`${styles.number} ${styles.wide}`}>{dollars(cost)}</td>
      <td>
        <PlaceBadges model={model} />
      </td>
      <td className={styles.number}>
        <When at={model.created_at} />
      </td>
    </tr>
  );
}

export function PlaceBadges({ model }: { readonly model: Model }) {
  const registered = registrationOf(model);
  const failed = Object.keys(trainedOf(model).notPublished).filter((name) => name === "hub" || name === "bucket");
  const there = (model.places ?? []).map((place) => place.kind);
  return (
    <span className={styles.places}>
      {there.map((kind) => (
        <Badge key={kind} tone="good">
          ✓ {placeWord(kind)}
        </Badge>
      ))}
      {failed
        .filter((kind) => !there.includes(kind))
        .map((kind) => (
          <Badge key={kind} tone="bad">
            ✕ {placeWord(kind)}
          </Badge>
        ))}
      {registered ? (
        <Badge tone={registered.tone}>
          {registered.mark} ComfyDeploy
          <span className="visually-hidden">, {registered.word.toLowerCase()}</span>
        </Badge>
      ) : null}
    </span>
  );
}
