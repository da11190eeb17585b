import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Recipe } from "~/api/documents";
import { Button } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import { bytes, counted } from "~/text/format";
import { DropZone } from "~/views/datasets/DropZone";
import { UploadContent } from "~/views/datasets/UploadContent";
import type { Dropped } from "~/views/datasets/upload/dropped";
import { beginUpload, uploadQuery, uploadsQuery } from "~/views/datasets/upload/uploads";
import { referenceOf } from "../form/bodies";
import type { Change, Draft } from "../form/draft";
import { Grid, Section } from "../form/Section";
import styles from "./DatasetSection.module.css";

interface Props {
  readonly recipe: Recipe;
  readonly draft: Draft;
  readonly change: Change;
  readonly problem?: string;
}

/** What is trained on: files from here, an earlier upload, or an address. */
export function DatasetSection({ recipe, draft, change, problem }: Props) {
  const upload = uploadOf(draft.dataset);
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<unknown>(null);

  async function begin(dropped: Dropped): Promise<void> {
    setBusy(true);
    setRefusal(null);
    const name = dropped.folder ?? (draft.name.trim() || "dataset");
    try {
      const started = await beginUpload(dropped, {
        name,
        recipe: referenceOf(recipe),
        trigger: draft.trigger.trim() || null,
      });
      change({ dataset: started.reference, ...(draft.name ? {} : { name: dropped.folder ?? "" }) });
    } catch (error) {
      setRefusal(error);
    }
    setBusy(false);
  }

  return (
    <Section title="Dataset">
      {upload === null ? (
        <>
          <DropZone
            title={`Drop a folder with ${wantedOf(recipe)} here`}
            busy={isBusy}
            onDropped={(it) => void begin(it)}
          >
            <p className="quiet">Or one archive (.zip or .tar). Hidden files are left out.</p>
          </DropZone>
          {refusal ? <ProblemNote problem={refusal} /> : null}
          <Elsewhere draft={draft} change={change} problem={problem} />
        </>
      ) : (
        <>
          {problem ? (
            <p role="alert" className={styles.problem}>
              ✕ {problem}
            </p>
          ) : null}
          <Chosen upload={upload} recipe={recipe} trigger={draft.trigger} onOther={() => change({ dataset: "" })} />
        </>
      )}
    </Section>
  );
}

function Elsewhere({ draft, change, problem }: Pick<Props, "draft" | "change" | "problem">) {
  const { data: uploads } = useQuery(uploadsQuery);
  const known = uploads?.items.filter((one) => one.complete) ?? [];
  return (
    <Grid>
      <Field label="Or an earlier upload" help={known.length === 0 ? "You have none yet." : undefined}>
        {(control) => (
          <select
            {...control}
            value=""
            disabled={known.length === 0}
            onChange={(event) => change({ dataset: event.target.value })}
          >
            <option value="">Choose</option>
            {known.map((one) => (
              <option key={one.id} value={one.reference}>
                {one.name} ({counted(one.files, "file")}, {bytes(one.bytes)})
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Or an address"
        problem={problem}
        help="s3://BUCKET/PREFIX or hf://datasets/OWNER/NAME; the server reads it with its own keys."
      >
        {(control) => (
          <input
            {...control}
            autoComplete="off"
            spellCheck={false}
            value={draft.dataset}
            onChange={(event) => change({ dataset: event.target.value.trim() })}
          />
        )}
      </Field>
    </Grid>
  );
}

function Chosen(props: {
  readonly upload: string;
  readonly recipe: Recipe;
  readonly trigger: string;
  readonly onOther: () => void;
}) {
  const { data: upload, error, refetch } = useQuery(uploadQuery(props.upload));
  if (error && !upload) {
    return (
      <>
        <ProblemNote problem={error} onRetry={() => void refetch()} />
        <div>
          <Button onClick={props.onOther}>Choose another dataset</Button>
        </div>
      </>
    );
  }
  if (!upload) return <Loading what="the dataset" height={120} />;
  return (
    <>
      <div className={styles.head}>
        <h3>{upload.name}</h3>
        <Button onClick={props.onOther}>Choose another dataset</Button>
      </div>
      <UploadContent
        upload={upload}
        recipe={referenceOf(props.recipe)}
        trigger={props.trigger}
        rules={props.recipe.dataset}
        mayTrain
      />
    </>
  );
}

/** The id of an upload; null: the dataset is somewhere else, or there is none yet. */
export function uploadOf(dataset: string): string | null {
  return /^upload:([0-9a-f]{32})/.exec(dataset)?.[1] ?? null;
}

function wantedOf(recipe: Recipe): string {
  const { dataset } = recipe;
  if (dataset?.kind === "text") return "JSON lines";
  return dataset?.captions === "none" ? "pictures" : "pictures and captions";
}
