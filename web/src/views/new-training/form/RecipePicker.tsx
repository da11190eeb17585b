import type { Recipe } from "~/api/documents";
import { counted } from "~/text/format";
import { referenceOf } from "./bodies";
import styles from "./RecipePicker.module.css";
import { Folded } from "./Section";

interface Props {
  readonly recipes: readonly Recipe[];
  readonly chosen: Recipe | null;
  readonly onChoose: (recipe: string) => void;
}

/** What it makes, with which trainer, and on what machine. */
export function RecipePicker({ recipes, chosen, onChoose }: Props) {
  return (
    <fieldset className={styles.recipes}>
      <legend className="visually-hidden">Recipe</legend>
      {recipes.map((recipe) => {
        const reference = referenceOf(recipe);
        return (
          <label key={reference} className={styles.recipe}>
            <input
              type="radio"
              name="recipe"
              value={reference}
              checked={recipe === chosen}
              onChange={() => onChoose(reference)}
            />
            <span className={styles.title}>{recipe.title}</span>
            <span className={styles.facts}>{factsOf(recipe).join(" · ")}</span>
          </label>
        );
      })}
      {chosen ? (
        <Folded title={`About ${chosen.title}`}>
          <p className={styles.about}>{chosen.description}</p>
        </Folded>
      ) : null}
    </fieldset>
  );
}

function factsOf(recipe: Recipe): readonly string[] {
  const { needs, dataset } = recipe;
  const gpus = needs?.gpus ?? 1;
  const gpu =
    gpus === 0 ? "no GPU" : `${gpus > 1 ? `${counted(gpus, "GPU")}, each` : "GPU"} ${needs?.vram_gib ?? 0} GB`;
  const least = dataset?.kind === "text" ? dataset.min_rows : dataset?.min_images;
  const what = dataset?.kind === "text" ? counted(least ?? 1, "line") : counted(least ?? 1, "picture");
  return [
    recipe.framework && recipe.framework !== "auto" ? recipe.framework : "own trainer",
    gpu,
    `${needs?.disk_gib ?? 0} GB disk`,
    `at least ${what}`,
  ];
}
