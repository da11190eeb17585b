import type { Recipe } from "~/api/documents";
import { Badge } from "~/design/StateMark";
import { counted, duration } from "~/text/format";
import { commandOf, type Step } from "./recipes";
import styles from "./Steps.module.css";

/** What runs on the machine, in order, with the commands as they are written in the recipe. */
export function Steps({ recipe }: { readonly recipe: Recipe }) {
  return (
    <section aria-labelledby="recipe-steps">
      <h2 id="recipe-steps">What runs on the machine</h2>
      <Part title="Set-up, once for each machine" steps={recipe.bootstrap ?? []} />
      <Part title="Steps" steps={recipe.steps} />
      <Part title="Before the machine is released" steps={recipe.cleanup ?? []} />
    </section>
  );
}

function Part({ title, steps }: { readonly title: string; readonly steps: readonly Step[] }) {
  if (steps.length === 0) return null;
  return (
    <>
      <h3 className={styles.title}>{title}</h3>
      <ol>
        {steps.map((step) => (
          <li key={step.name} className={styles.step}>
            <p className={styles.name}>
              <strong>{step.name}</strong>
              {step.training ? <Badge tone="running">● the training</Badge> : null}
              <span className="quiet">{limits(step)}</span>
            </p>
            {/* The command may be wider than the page: it scrolls, also by keyboard. */}
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
            <pre className={styles.command} tabIndex={0}>
              {commandOf(step)}
            </pre>
          </li>
        ))}
      </ol>
    </>
  );
}

function limits(step: Step): string {
  const found = [
    step.timeout ? `at most ${duration(step.timeout)}` : "",
    step.tries && step.tries > 1 ? `up to ${counted(step.tries, "try", "tries")}` : "",
    step.secrets && step.secrets.length > 0 ? `gets ${step.secrets.join(", ")}` : "",
  ];
  return found.filter(Boolean).join(", ");
}
