import { Field } from "~/design/Field";

interface Props {
  readonly label: string;
  readonly help: string;
  readonly problem?: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** A number as it is typed; the unit is in the label. */
export function Amount({ label, help, problem, value, onChange }: Props) {
  return (
    <Field label={label} problem={problem} help={help}>
      {(control) => (
        <input
          {...control}
          inputMode="decimal"
          autoComplete="off"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
