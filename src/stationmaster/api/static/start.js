// Shows who is signed in.
"use strict";

async function showWho() {
  const answer = await fetch("/api/session");
  if (answer.ok) {
    const session = await answer.json();
    document.getElementById("who").textContent = `Signed in as ${session.user} (${session.role}).`;
  }
}

showWho();
