// The controls of a moment, in an element of a view. Their pictures and tables come from Python, with all texts escaped.

const MOMENT_STYLE = `
.sparkstream-moment { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; }
.sparkstream-moment .controls { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; margin: 4px 0; }
.sparkstream-moment label { display: flex; gap: 6px; align-items: center; }
.sparkstream-moment button, .sparkstream-moment select, .sparkstream-moment input[type=text] {
  font: inherit; color: inherit; height: 28px; box-sizing: border-box; padding: 0 8px; border-radius: 3px;
  border: 1px solid var(--jp-border-color1, #bbb); }
.sparkstream-moment button, .sparkstream-moment select { background: var(--jp-layout-color2, #eee); cursor: pointer; }
.sparkstream-moment input[type=text] { background: var(--jp-layout-color0, #fff); width: 11em; }
.sparkstream-moment button:hover { border-color: currentColor; }
.sparkstream-moment button[aria-disabled=true] { opacity: .45; cursor: default; }
.sparkstream-moment select { max-width: 220px; }
.sparkstream-moment .slider { flex: 1 1 260px; accent-color: var(--jp-brand-color1, #1976d2); }
.sparkstream-moment :is(button, select, input):focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-moment output { font-variant-numeric: tabular-nums; }
.sparkstream-moment svg { display: block; color: var(--jp-ui-font-color1, #444) !important; }
.sparkstream-moment .timeline svg { cursor: crosshair; }
.sparkstream-moment .failed { color: var(--jp-error-color1, #b00); }
.sparkstream-moment .failed:empty { display: none; }
.sparkstream-moment .state, .sparkstream-moment .tables, .sparkstream-moment .answer { overflow-x: auto; }
.sparkstream-moment fieldset { border: 1px solid var(--jp-border-color2, #ddd); margin: 8px 0 2px; padding: 2px 10px 6px; }
.sparkstream-moment.waiting :is(.state, .timeline) { opacity: .55; }
.sparkstream-ended :is(.controls, fieldset) { display: none; }
`;

// Fills `root`, and returns a function that draws a state; what a person does goes to `send`.
function createMoment(root, send) {
  make("style", "", root, { textContent: MOMENT_STYLE });
  const view = make("div", "sparkstream-moment", root);
  view.setAttribute("role", "group");
  view.setAttribute("aria-label", "time machine");
  const button = (parent, className, textContent, label, act) => {
    const element = make("button", className, parent, { type: "button", textContent, title: label });
    element.setAttribute("aria-label", label);
    element.onclick = () => { if (element.getAttribute("aria-disabled") !== "true") act(); };
    return element;
  };
  const labelled = (parent, text, tag, className, more) => {
    const label = make("label", "", parent);
    label.append(text);
    return make(tag, className, label, more);
  };
  const field = (parent, text, className, placeholder, act) => {
    const input = labelled(parent, text, "input", className, { type: "text", placeholder, spellcheck: false });
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") act(event.shiftKey); });
    return input;
  };

  let waiting;
  const ask = (message) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => view.classList.add("waiting"), 400);
    send(message);
  };

  const steps = make("div", "controls steps", view);
  const alongOutputs = (back) => ask({ do: "output", stream: stream.value, back });
  const previous = button(steps, "previous", "◀ output", "previous output", () => alongOutputs(true));
  const back = button(steps, "back", "◀", "a step back", () => go(current() - 1));
  const slider = make("input", "slider", steps, { type: "range", min: 0, step: 1 });
  slider.setAttribute("aria-label", "step of the input");
  const forth = button(steps, "forth", "▶", "a step forth", () => go(current() + 1));
  const next = button(steps, "next", "output ▶", "next output", () => alongOutputs(false));
  const stream = labelled(steps, "of", "select", "stream");
  const where = make("output", "where", steps);

  const places = make("div", "controls places", view);
  const goTo = () => ask({ do: "place", text: place.value });
  const place = field(places, "go to", "place", "time or event number", goTo);
  button(places, "go", "Go", "go to this time or event", goTo);
  const find = (back) => ask({ do: "find", text: value.value, back: Boolean(back) });
  const value = field(places, "find value", "value", "card-07", find);
  button(places, "find-previous", "▲", "previous event or output with this value", () => find(true));
  button(places, "find-next", "▼", "next event or output with this value", () => find(false));
  const found = make("output", "found", places);
  const own = button(places, "own", "the app's own input", "leave the branch of the input", () => ask({ do: "own" }));

  const failed = make("div", "failed", view);
  failed.setAttribute("role", "alert");
  const timeline = make("div", "timeline", view);
  const head = make("div", "head", view);
  head.setAttribute("role", "status");
  const choice = make("div", "controls choice", view);
  const query = labelled(choice, "state of", "select", "state-of");
  const picture = make("div", "state", view);
  const details = make("details", "tables", view);
  make("summary", "", details, { textContent: "all queries, tables and windows" });
  const tables = make("div", "", details);

  const box = make("fieldset", "why-not", view);
  make("legend", "", box, { textContent: "Why did an output not come?" });
  const question = make("div", "controls", box);
  const askWhyNot = () => ask({ do: "ask", stream: output.value, values: values.value, at: at.value });
  const output = labelled(question, "output", "select", "output");
  const values = field(question, "with", "values", "card='card-07'", askWhyNot);
  const at = field(question, "at", "at", "about when", askWhyNot);
  const why = button(question, "why", "Why not?", "find the smallest change with which it comes", askWhyNot);
  const unanswered = make("div", "failed", box);
  unanswered.setAttribute("role", "alert");
  const answer = make("div", "answer", box);
  answer.setAttribute("role", "status");
  const proof = button(box, "proof", "Go to the moment at which it comes", "in the input with the change", () => ask({ do: "proof" }));
  output.onchange = () => (values.value = "");

  // While the slider moves, one step is asked for at a time, and its drawing does not move the slider back.
  let wanted = null, asked = false;
  const current = () => (wanted === null ? Number(slider.value) : wanted);
  function go(position) {
    wanted = Math.max(0, Math.min(position, Number(slider.max)));
    slider.value = wanted;
    if (asked) return;
    asked = true;
    ask({ do: "go", position: wanted });
  }
  slider.oninput = () => go(Number(slider.value));
  query.onchange = () => ask({ do: "query", query: query.value });

  const fill = (select, options, chosen) => {
    if (select.dataset.options !== JSON.stringify(options)) {
      select.dataset.options = JSON.stringify(options);
      select.replaceChildren(...options.map((name) => new Option(name, name)));
    }
    if (chosen !== undefined) select.value = chosen;
  };

  let former = {};
  const msAt = (event) => {
    const svg = timeline.querySelector("svg"), bounds = svg.getBoundingClientRect();
    const [left, right, first, last] = former.ends;
    const x = (event.clientX - bounds.left) * (svg.viewBox.baseVal.width / bounds.width);
    const share = (x - left) / (right - left);
    return share < -0.02 || share > 1.02 ? null : first + share * (last - first);
  };
  timeline.onclick = (event) => {
    const ms = msAt(event);
    if (ms !== null) ask({ do: "time", ms });
  };

  const set = (element, key, state) => { if (state[key] !== former[key]) element.innerHTML = state[key]; };
  return (state) => {
    if (!state.serial) return;
    clearTimeout(waiting);
    view.classList.remove("waiting");
    slider.max = state.steps;
    asked = false;
    if (wanted !== null && wanted !== state.position && !state.failed) go(wanted);
    else wanted = null;
    if (wanted === null) slider.value = state.position;
    const text = `step ${state.position.toLocaleString("en")} of ${state.steps.toLocaleString("en")} · ${state.clock}`;
    put(where, text);
    slider.setAttribute("aria-valuetext", text);
    back.setAttribute("aria-disabled", String(state.position === 0));
    forth.setAttribute("aria-disabled", String(state.position === state.steps));
    fill(stream, state.streams, state.stream);
    for (const element of [previous, next]) element.setAttribute("aria-disabled", String(!state.streams.length));
    put(found, state.found);
    hide(own, !state.branch, slider);
    put(failed, state.failed);
    set(timeline, "timeline", state);
    for (const line of timeline.querySelectorAll("line.position")) {
      line.setAttribute("x1", state.place);
      line.setAttribute("x2", state.place);
    }
    set(head, "head", state);
    fill(query, state.queries, state.query);
    choice.hidden = !state.queries.length;
    set(picture, "state", state);
    set(tables, "tables", state);
    fill(output, state.streams);
    box.hidden = !state.streams.length;
    why.setAttribute("aria-disabled", String(state.asking));
    put(why, state.asking ? "Searching…" : "Why not?");
    put(unanswered, state.unanswered);
    set(answer, "answer", state);
    hide(proof, !state.proved, why);
    former = state;
  };
}
