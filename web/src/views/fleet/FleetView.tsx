export function FleetView() {
  return <h1>Trainings</h1>;
}
