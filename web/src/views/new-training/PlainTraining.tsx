import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { answer, api } from "~/api/client";
import type { Recipe } from "~/api/documents";
import { isPicture } from "~/views/datasets/Pictures";
import { expectedOf } from "~/views/datasets/upload/expected";
import { checkQuery, uploadQuery, useUploader } from "~/views/datasets/upload/uploads";
import { useProposing } from "./confirm/proposing";
import { useEstimate } from "./cost/forecast";
import { DatasetSection, uploadOf } from "./dataset/DatasetSection";
import { estimateOf, jobFileOf, referenceOf } from "./form/bodies";
import { problemsOf } from "./form/checks";
import { type Draft, EMPTY, useDraft } from "./form/draft";
import { RecipePicker } from "./form/RecipePicker";
import { Section } from "./form/Section";
import type { Prefill } from "./prefill";
import { TrainingForm } from "./TrainingForm";

/** Pictures that an estimate is for while there is no dataset. */
const ASSUMED_IMAGES = 20;

interface Props {
  readonly recipes: readonly Recipe[];
  readonly prefill: Prefill;
}

/** A new training from nothing but a recipe and a dataset. */
export function PlainTraining({ recipes, prefill }: Props) {
  const { draft, change, forget } = useDraft("plain", EMPTY, askedOf(prefill));
  const recipe = recipes.find((one) => referenceOf(one) === draft.recipe || one.name === draft.recipe) ?? recipes[0];
  if (!recipe) return null;
  return <WithRecipe recipes={recipes} recipe={recipe} draft={draft} change={change} forget={forget} />;
}

type Inner = Omit<Props, "prefill"> & ReturnType<typeof useDraft> & { readonly recipe: Recipe };

function WithRecipe({ recipes, recipe, draft, change, forget }: Inner) {
  const dataset = useDataset(draft, recipe);
  const isWrong = Object.keys(problemsOf({ ...draft, dataset: "" }, recipe)).length > 0;
  const images = dataset.images ?? ASSUMED_IMAGES;
  const forecast = useEstimate(isWrong ? null : estimateOf(draft, recipe, images));
  useTriggerOfUpload(draft, change);
  const steps = useProposing({
    propose: () => answer(api.POST("/api/proposals", { body: jobFileOf(draft, recipe) })),
    forget,
  });
  return (
    <TrainingForm
      recipe={recipe}
      draft={draft}
      change={change}
      forecast={forecast}
      steps={steps}
      images={images}
      isAssumed={dataset.images === null && recipe.dataset?.kind !== "text"}
      blocker={dataset.blocker}
      head={(problems) => (
        <>
          <Section title="Recipe">
            <RecipePicker recipes={recipes} chosen={recipe} onChoose={(reference) => change({ recipe: reference })} />
          </Section>
          <DatasetSection recipe={recipe} draft={draft} change={change} problem={problems.dataset} />
        </>
      )}
    />
  );
}

/** How many pictures there are, and what keeps a training on them from being proposed. */
function useDataset(draft: Draft, recipe: Recipe): { images: number | null; blocker: string | null } {
  const id = uploadOf(draft.dataset) ?? "";
  const sending = useUploader(id);
  const upload = useQuery({ ...uploadQuery(id), enabled: id !== "" });
  const check = useQuery({
    ...checkQuery(id, referenceOf(recipe), draft.trigger.trim() || null),
    enabled: false, // asked for beside the pictures
  });
  if (draft.dataset === "") return { images: null, blocker: "Choose a dataset first." };
  if (id === "") return { images: null, blocker: null };
  const local = sending.files.filter((file) => isPicture(file.path)).length;
  const images = check.data?.images ?? (local > 0 ? local : null);
  const expected = sending.state === "idle" ? expectedOf(id) : null;
  const isShort = expected !== null && (upload.data?.files ?? 0) < expected.files;
  if (upload.error) return { images, blocker: "The dataset was deleted. Choose another one." };
  if (sending.state !== "idle" && sending.state !== "done")
    return { images, blocker: "The dataset is still being uploaded." };
  if (upload.data && (!upload.data.complete || isShort)) return { images, blocker: "The dataset is not complete yet." };
  if (check.data && !check.data.trainable)
    return { images, blocker: "The dataset has errors, shown beside its files." };
  return { images, blocker: null };
}

/** An upload that was begun with a trigger brings it along. */
function useTriggerOfUpload(draft: Draft, change: (changes: Partial<Draft>) => void): void {
  const id = uploadOf(draft.dataset) ?? "";
  const { data: upload } = useQuery({ ...uploadQuery(id), enabled: id !== "" });
  const trigger = upload?.trigger ?? null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the upload changes, not during typing
  useEffect(() => {
    if (trigger !== null && draft.trigger === "") change({ trigger });
  }, [upload?.id, trigger]);
}

function askedOf({ recipe, dataset }: Prefill): Partial<Draft> {
  return { ...(recipe === null ? {} : { recipe }), ...(dataset === null ? {} : { dataset }) };
}
