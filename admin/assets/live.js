// Follows a run's log: appends lines as they come, goes on where it stopped, ends when the server says so.
"use strict";
const log = document.querySelector("[data-live]");
if (log) {
  const state = document.querySelector("[data-live-state]");
  const say = (text) => { if (state) state.textContent = text; };
  let last = log.dataset.after || "0";
  const source = new EventSource(log.dataset.live + "?after=" + encodeURIComponent(last));
  source.addEventListener("line", (event) => {
    last = event.lastEventId;
    const atEnd = window.innerHeight + window.scrollY >= document.body.offsetHeight - 40;
    // The server escaped every word of it; the policy of the page lets no script in it run.
    log.insertAdjacentHTML("beforeend", event.data);
    if (atEnd) window.scrollTo(0, document.body.scrollHeight);
    say("live");
  });
  source.addEventListener("end", () => { source.close(); say("over"); window.location.reload(); });
  source.onerror = () => say("connection lost, trying again");
}
