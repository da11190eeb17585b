import { severityLook } from "~/text/health";
import { settingName, settingUnit, settingValue } from "~/text/values";
import styles from "./ApplyDialog.module.css";
import type { Choice } from "./choices";

interface Props {
  readonly choices: readonly Choice[];
  readonly chosen: ReadonlySet<number>;
  readonly onChange: (number: number, isChosen: boolean) => void;
}

/** What can be followed, with a box each; what cannot is listed with its path and the reason. */
export function RecommendationChoices({ choices, chosen, onChange }: Props) {
  const possible = choices.filter((choice) => choice.isPossible);
  const others = choices.filter((choice) => !choice.isPossible);
  return (
    <>
      <fieldset className={styles.choices}>
        <legend>Change in the new job</legend>
        {possible.map((choice) => (
          <label key={choice.number} className={styles.choice}>
            <input
              type="checkbox"
              checked={chosen.has(choice.number)}
              onChange={(event) => onChange(choice.number, event.target.checked)}
            />
            <Text choice={choice} />
          </label>
        ))}
      </fieldset>
      {others.length > 0 ? (
        <section aria-labelledby="by-hand">
          <h3 id="by-hand">To change by hand</h3>
          <ul className={styles.others}>
            {others.map((choice) => (
              <li key={choice.number}>
                <Text choice={choice} />
                <p className="quiet">
                  <code>{choice.recommendation.config_path}</code>
                  {choice.why ? `: ${choice.why}` : ""}
                </p>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}

function Text({ choice }: { readonly choice: Choice }) {
  const { lever, severity, title, current_value, recommended_value } = choice.recommendation;
  const look = severityLook(severity);
  const unit = settingUnit(lever);
  const value = recommended_value === null || recommended_value === undefined ? null : settingValue(recommended_value);
  const before =
    current_value === null || current_value === undefined ? "" : `${settingValue(current_value)}${unit} → `;
  return (
    <span>
      <span className={styles[look.tone]}>
        <span aria-hidden>{look.mark}</span> {look.word}
      </span>{" "}
      {value === null ? null : (
        <strong>
          {settingName(lever)} {before}
          {value}
          {unit}
        </strong>
      )}{" "}
      <span className="quiet">{title}</span>
    </span>
  );
}
