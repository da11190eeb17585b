export function MachinesView() {
  return <h1>Machines</h1>;
}
