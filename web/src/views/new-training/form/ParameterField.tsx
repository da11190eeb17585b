import { Button } from "~/design/Button";
import { Field } from "~/design/Field";
import { labelOf } from "./groups";
import styles from "./ParameterField.module.css";
import { allowed, type Parameter, shownValue, textOf } from "./parameters";

interface Props {
  readonly name: string;
  readonly parameter: Parameter;
  /** What was typed; undefined: the default. */
  readonly text: string | undefined;
  readonly onChange: (text: string | undefined) => void;
  readonly problem?: string;
  /** The value in the job that is run again; undefined: there is none. */
  readonly before?: unknown;
}

/** One parameter with its help, what is allowed, its default, and how it differs from an earlier job. */
export function ParameterField({ name, parameter, text, onChange, problem, before }: Props) {
  const standard = parameter.default ?? null;
  const shown = text ?? textOf(standard);
  const isChanged = before !== undefined && textOf(before) !== shown;
  const isOwn = text !== undefined && text !== textOf(standard) && before === undefined;
  return (
    <Field
      label={
        <>
          {labelOf(name)}{" "}
          {isChanged ? (
            <span className={styles.changed}>
              {shownValue(before)} → {shownValue(shown === "true" ? true : shown === "false" ? false : shown)}
            </span>
          ) : null}
        </>
      }
      problem={problem}
      help={
        <>
          {parameter.help} <Limits parameter={parameter} />
          {standard === null ? "Required." : `Default: ${shownValue(standard)}.`}
          {isOwn || isChanged ? (
            <Button
              kind="quiet"
              className={styles.reset}
              onClick={() => onChange(before === undefined ? undefined : textOf(before))}
            >
              {before === undefined ? "Use the default" : "As before"}
              <span className="visually-hidden"> for {labelOf(name)}</span>
            </Button>
          ) : null}
        </>
      }
    >
      {(control) => <Control control={control} parameter={parameter} shown={shown} onChange={onChange} />}
    </Field>
  );
}

function Limits({ parameter }: { readonly parameter: Parameter }) {
  if (parameter.type !== "int" && parameter.type !== "float") return null;
  const words = allowed(parameter).replace(/^a (whole )?number ?/, "");
  return words === "" ? null : <>{words.charAt(0).toUpperCase() + words.slice(1)}. </>;
}

interface ControlProps {
  readonly control: { id: string; "aria-describedby": string; "aria-invalid": boolean | undefined };
  readonly parameter: Parameter;
  readonly shown: string;
  readonly onChange: (text: string) => void;
}

function Control({ control, parameter, shown, onChange }: ControlProps) {
  switch (parameter.type) {
    case "bool":
      return (
        <input
          {...control}
          type="checkbox"
          className={styles.check}
          checked={shown === "true"}
          onChange={(event) => onChange(String(event.target.checked))}
        />
      );
    case "choice":
      return (
        <select {...control} value={shown} onChange={(event) => onChange(event.target.value)}>
          {parameter.choices.includes(shown) ? null : <option value={shown}>{shown || "Choose"}</option>}
          {parameter.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      );
    case "str":
      if ((parameter.max_length ?? 0) <= 500) break;
      return <textarea {...control} rows={3} value={shown} onChange={(event) => onChange(event.target.value)} />;
  }
  return (
    <input
      {...control}
      value={shown}
      spellCheck={false}
      autoComplete="off"
      inputMode={parameter.type === "int" ? "numeric" : parameter.type === "float" ? "decimal" : "text"}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
