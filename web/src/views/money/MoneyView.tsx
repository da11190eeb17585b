export function MoneyView() {
  return <h1>Money</h1>;
}
