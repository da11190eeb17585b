export function DatasetsView() {
  return <h1>Datasets</h1>;
}
