import { useQuery } from "@tanstack/react-query";
import type { Model } from "~/api/documents";
import { recipeQuery } from "~/views/recipes/queries";
import { trainedOf, valueText } from "./models";
import styles from "./Parameters.module.css";

/** The parameters of the training: those that were changed are shown, the recipe's own are folded. */
export function Parameters({ model }: { readonly model: Model }) {
  // A recipe may have been removed since; then every parameter is shown.
  const { data: recipe } = useQuery({ ...recipeQuery(model.recipe), retry: false });
  const entries = Object.entries(trainedOf(model).parameters);
  const isUsual = ([name, value]: [string, unknown]) => {
    const known = recipe?.parameters?.[name];
    return known !== undefined && valueText(known.default) === valueText(value);
  };
  const changed = entries.filter((entry) => !isUsual(entry));
  const usual = entries.filter(isUsual);
  return (
    <section aria-labelledby="model-parameters">
      <h2 id="model-parameters">Parameters</h2>
      {entries.length === 0 ? <p className="quiet">None are known.</p> : null}
      {changed.length > 0 ? <ValueTable caption="Parameters that differ from the recipe" entries={changed} /> : null}
      {entries.length > 0 && changed.length === 0 ? <p className="quiet">All as the recipe has them.</p> : null}
      {usual.length > 0 ? (
        <details className={styles.usual}>
          <summary>As the recipe has them: {usual.length}</summary>
          <ValueTable caption="Parameters as the recipe has them" entries={usual} />
        </details>
      ) : null}
    </section>
  );
}

interface TableProps {
  readonly caption: string;
  readonly entries: readonly [string, unknown][];
}

function ValueTable({ caption, entries }: TableProps) {
  return (
    <table className={styles.values}>
      <caption className="visually-hidden">{caption}</caption>
      <tbody>
        {entries.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{valueText(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
