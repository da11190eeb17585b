import { Link } from "@tanstack/react-router";
import { Empty } from "~/design/Empty";

export function NotFound() {
  return (
    <Empty title="There is no such page">
      <Link to="/">All trainings</Link>
    </Empty>
  );
}
