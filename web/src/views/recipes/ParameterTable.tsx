import { valueText } from "~/views/models/models";
import styles from "./ParameterTable.module.css";
import { boundsOf, type Parameter } from "./recipes";

const TYPES: Record<Parameter["type"], string> = {
  int: "whole number",
  float: "number",
  str: "text",
  bool: "yes or no",
  choice: "one of",
};

/** What can be set for a training, with the recipe's own value and the bounds. */
export function ParameterTable({ parameters }: { readonly parameters: Readonly<Record<string, Parameter>> }) {
  const entries = Object.entries(parameters);
  return (
    <section aria-labelledby="recipe-parameters">
      <h2 id="recipe-parameters">Parameters</h2>
      {entries.length === 0 ? <p className="quiet">It has no parameters.</p> : null}
      <table className={styles.table}>
        <caption className="visually-hidden">Parameters of the recipe</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Usually</th>
            <th scope="col">Allowed</th>
            <th scope="col">Meaning</th>
          </tr>
        </thead>
        <tbody>
          {entries.map(([name, parameter]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td className={styles.value}>
                {parameter.default === null || parameter.default === undefined
                  ? "must be set"
                  : valueText(parameter.default)}
              </td>
              <td>
                {TYPES[parameter.type]} <span className="quiet">{boundsOf(parameter)}</span>
              </td>
              <td>
                {parameter.help}
                {parameter.lever ? (
                  <span className="quiet"> The analysis may recommend another value ({parameter.lever}).</span>
                ) : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
