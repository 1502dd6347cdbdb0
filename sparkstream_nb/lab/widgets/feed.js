// A feed in the background. Its bar comes from Python, with all texts escaped; the rest is put into the page as texts.

const STYLE = `
.sparkstream-play { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; }
.sparkstream-play .controls { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 4px 0; }
.sparkstream-play .muted { color: var(--jp-ui-font-color2, #666); font-variant-numeric: tabular-nums; }
.sparkstream-play button, .sparkstream-play select, .sparkstream-play input {
  font: inherit; color: inherit; background: var(--jp-layout-color2, #eee); height: 28px; padding: 0 9px;
  border: 1px solid var(--jp-border-color1, #bbb); border-radius: 3px; box-sizing: border-box; }
.sparkstream-play button { cursor: pointer; min-width: 5em; }
.sparkstream-play input { width: 6em; text-align: right; }
.sparkstream-play button:hover { border-color: currentColor; }
.sparkstream-play :is(button, select, input):focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-play .failed { color: var(--jp-error-color1, #b00); }
.sparkstream-play .failed:empty { display: none; }
.sparkstream-ended .sparkstream-play .controls { display: none; }
`;

function create(root, send) {
  make("style", "", root, { textContent: STYLE });
  const view = make("div", "sparkstream-play", root);
  const bar = make("div", "bar", view);
  const controls = make("div", "controls", view);
  const play = make("button", "play", controls, { type: "button" });
  const step = make("button", "step", controls, { type: "button", textContent: "Step" });
  const events = make("input", "events", controls, { type: "number", min: 1, value: 1 });
  events.setAttribute("aria-label", "events of a step");
  const pace = make("select", "pace", controls);
  const restart = make("button", "restart", controls, { type: "button", textContent: "Begin again" });
  const stop = make("button", "stop", controls, { type: "button", textContent: "Stop" });
  const position = make("div", "position muted", view);
  position.setAttribute("role", "status");
  const failed = make("div", "failed", view);
  failed.setAttribute("role", "alert");

  let state = {};
  play.onclick = () => send({ do: state.feed_state === "paused" ? "resume" : "pause" });
  step.onclick = () => send({ do: "step", events: Math.max(1, Math.floor(Number(events.value)) || 1) });
  pace.onchange = () => send({ do: "pace", kind: state.kind, value: Number(pace.value) });
  restart.onclick = () => send({ do: "restart" });
  stop.onclick = () => send({ do: "stop" });
  let offered = "";
  return (next) => {
    if (!next.serial) return;
    state = next;
    bar.innerHTML = state.bar;
    put(position, state.position);
    put(failed, state.failed);
    put(play, state.feed_state === "paused" ? "Play" : "Pause");
    hide(play, !state.active, restart);
    hide(step, !state.active, restart);
    hide(stop, !state.active, restart);
    events.hidden = pace.hidden = !state.active;
    pace.setAttribute("aria-label", state.kind === "speed" ? "speed of event time" : "events a second");
    const choices = JSON.stringify(state.choices);
    if (choices !== offered) {
      offered = choices;
      pace.replaceChildren(...state.choices.map((c) => Object.assign(document.createElement("option"), { value: c.value, textContent: c.label })));
    }
    if (document.activeElement !== pace) pace.value = String(state.value);
  };
}
