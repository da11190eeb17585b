import type { Recipe } from "~/api/documents";
import { counted } from "~/text/format";
import type { Problems } from "./checks";
import type { Change, Draft } from "./draft";
import { type Group, groupsOf } from "./groups";
import { ParameterField } from "./ParameterField";
import { Folded, Grid, Section } from "./Section";

interface Props {
  readonly recipe: Recipe;
  readonly draft: Draft;
  readonly change: Change;
  readonly problems: Problems;
  /** The parameters of the job that is run again. */
  readonly before?: Readonly<Record<string, unknown>>;
}

/** All parameters of the recipe, by group. */
export function ParameterGroups(props: Props) {
  return (
    <>
      {groupsOf(props.recipe.parameters ?? {}).map((group) =>
        group.isRare ? (
          <Section key={group.title} title="Details">
            <Folded
              title={group.title}
              note={`(${counted(group.parameters.length, "parameter")})`}
              isOpen={group.parameters.some(([name]) => props.problems[`parameters.${name}`] || isChanged(props, name))}
            >
              <Fields {...props} group={group} />
            </Folded>
          </Section>
        ) : (
          <Section key={group.title} title={group.title}>
            <Fields {...props} group={group} />
          </Section>
        ),
      )}
    </>
  );
}

function isChanged({ before, draft }: Props, name: string): boolean {
  const text = draft.parameters[name];
  return before !== undefined && text !== undefined && text !== String(before[name] ?? "");
}

function Fields({ group, draft, change, problems, before }: Props & { readonly group: Group }) {
  return (
    <Grid>
      {group.parameters.map(([name, parameter]) => (
        <ParameterField
          key={name}
          name={name}
          parameter={parameter}
          text={draft.parameters[name]}
          problem={problems[`parameters.${name}`]}
          before={before === undefined ? undefined : (before[name] ?? parameter.default ?? null)}
          onChange={(text) => {
            const { [name]: _, ...others } = draft.parameters;
            change({ parameters: text === undefined ? others : { ...others, [name]: text } });
          }}
        />
      ))}
    </Grid>
  );
}
