export function NewTrainingView() {
  return <h1>New training</h1>;
}
