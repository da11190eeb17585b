export function ModelsView() {
  return <h1>Models</h1>;
}
