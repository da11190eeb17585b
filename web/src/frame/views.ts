/** The views that the frame leads to, by name, and the keys that go there. */
export const VIEWS = [
  { to: "/", label: "Trainings", keys: "g t" },
  { to: "/machines", label: "Machines", keys: "g m" },
  { to: "/models", label: "Models", keys: "g o" },
  { to: "/datasets", label: "Datasets", keys: "g d" },
  { to: "/recipes", label: "Recipes", keys: "g r" },
  { to: "/money", label: "Money", keys: "g c" },
  { to: "/settings", label: "Settings", keys: "g s" },
] as const;
