// Signs in with the code after the # of the address, or with a token that somebody types.
"use strict";

const form = document.getElementById("form");
const problem = document.getElementById("problem");

async function signIn(code) {
  problem.textContent = "";
  try {
    const answer = await fetch("/api/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
    });
    if (answer.ok) {
      window.location.replace("/");
      return;
    }
    const said = await answer.json();
    problem.textContent = said.detail || "The server refused.";
  } catch (error) {
    problem.textContent = "The server does not answer.";
  }
  form.hidden = false;
}

const code = window.location.hash.slice(1);
// The code must not stay in the address bar or in the browser's history.
window.history.replaceState(null, "", "/sign-in");
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = document.getElementById("code");
  const token = typed.value.trim();
  typed.value = "";
  signIn(token);
});
if (code) {
  signIn(code);
} else {
  form.hidden = false;
}
