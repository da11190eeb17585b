import { Field } from "~/design/Field";

interface Props {
  readonly label: string;
  readonly help: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** A name that must be given. */
export function NameField({ label, help, value, onChange }: Props) {
  return (
    <Field label={label} help={help}>
      {(control) => (
        <input
          {...control}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          required
          maxLength={100}
          autoComplete="off"
        />
      )}
    </Field>
  );
}
