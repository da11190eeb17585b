export function CompareView() {
  return <h1>Compare</h1>;
}
