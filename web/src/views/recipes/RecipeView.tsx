export function RecipeView() {
  return <h1>Recipe</h1>;
}
