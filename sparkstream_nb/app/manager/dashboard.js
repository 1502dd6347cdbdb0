// Loads the apps again every two seconds. They come as HTML, with all texts escaped.

const SECONDS = 2;
const place = document.querySelector("main");
const failed = document.querySelector(".failed");
let former = "";
let last = new Date();

async function refresh() {
  try {
    const answer = await fetch(`${location.pathname}?part=apps`, { cache: "no-store", signal: AbortSignal.timeout(10_000) });
    if (!answer.ok) throw new Error(`the manager answers ${answer.status}`);
    const text = await answer.text();
    if (text !== former) place.innerHTML = former = text;
    last = new Date();
    failed.textContent = "";
  } catch (error) {
    failed.textContent = `Not refreshed since ${last.toLocaleTimeString()}: ${error.message}`;
  }
  place.classList.toggle("stale", failed.textContent !== "");
  setTimeout(refresh, 1000 * SECONDS);
}

setTimeout(refresh, 1000 * SECONDS);
