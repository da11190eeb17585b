export function ModelView() {
  return <h1>Model</h1>;
}
