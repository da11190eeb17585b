// Before the first paint, so that a dark page never flashes white. `frame/theme.ts` changes it afterwards.
const chosen = localStorage.getItem("theme");
const isDark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = isDark ? "dark" : "light";
