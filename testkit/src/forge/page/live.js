// Puts what is new into an open thread. The page is whole without it.
"use strict";
const thread = document.getElementById("thread");
if (thread) {
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("thread");
      if (fresh && fresh.innerHTML !== thread.innerHTML) thread.innerHTML = fresh.innerHTML;
    } catch {
      // The forge is away; the next round may find it.
    }
  }, 1500);
}
