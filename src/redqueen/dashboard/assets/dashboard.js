// Keeps a page of the dashboard up to date while its run goes on, and remembers the chosen colours.
"use strict";
(function () {
  new MutationObserver(() => {
    try { localStorage.setItem("redqueen-theme", document.documentElement.dataset.theme); } catch (error) { /* forbidden: not remembered */ }
  }).observe(document.documentElement, { attributeFilter: ["data-theme"] });

  // Buttons that copy a command; where the browser does not allow it, the command is selected instead.
  for (const copier of document.querySelectorAll("button[data-copy]")) {
    const command = document.getElementById(copier.dataset.copy);
    copier.hidden = false;
    copier.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        copier.textContent = "Copied";
      } catch (error) {
        getSelection().selectAllChildren(command);
        copier.textContent = "Selected: press Ctrl-C";
      }
    });
  }

  const period_ms = 1000 * Number(document.body.dataset.refresh || 0);
  if (!period_ms) return;
  const status = document.getElementById("live-status"), button = document.getElementById("live");
  let paused = false, failures = 0, seen = document.getElementById("figures").textContent;

  function say(text) {
    if (status.textContent !== text) status.textContent = text;
  }

  // Takes over what is new in another copy of this page: texts and tables by their id, figures by their numbers. A page
  // that has other parts now (a run's first step is played, a run has appeared) is loaded anew.
  function takeOver(page) {
    const parts = (of) => [...of.querySelectorAll("[data-live]")].map((part) => part.id).join();
    if (parts(page) !== parts(document) && !document.querySelector("input:checked")) { location.reload(); return false; }
    for (const old of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(old.id);
      if (!fresh || fresh.innerHTML === old.innerHTML || old.contains(document.activeElement)) continue;
      old.replaceChildren(...fresh.childNodes);
    }
    const text = page.getElementById("figures").textContent;
    if (text === seen) return false;
    const names = (json) => JSON.parse(json).map((figure) => figure.id).join();
    if (names(text) !== names(seen)) { location.reload(); return false; }
    seen = text;
    window.redqueenFigures.update(JSON.parse(text));
    return true;
  }

  async function look() {
    if (!paused && !document.hidden) {
      try {
        const answer = await fetch(location.href, { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        failures = 0;
        if (takeOver(page)) say("Updated " + new Date().toLocaleTimeString("en-GB"));
        if (!page.body.dataset.refresh) {
          say("The run has ended; this is its last state.");
          button.hidden = true;
          return;
        }
      } catch (error) {
        failures += 1;
        say("No answer from the dashboard; is it still running?");
      }
    }
    setTimeout(look, period_ms * Math.min(1 + failures, 6));
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Go on" : "Pause";
    say(paused ? "Paused." : "Live again.");
  });
  setTimeout(look, period_ms);
})();
