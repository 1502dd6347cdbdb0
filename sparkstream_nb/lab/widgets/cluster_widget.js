// The controls of a cluster. Its pictures and tables come from Python, with all texts escaped.

const STYLE = `
.sparkstream-cluster { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; }
.sparkstream-cluster .controls { display: grid; gap: 6px 0; margin: 6px 0; }
.sparkstream-cluster .node { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; padding-left: 10px;
  border-left: 5px solid var(--role, currentColor); }
.sparkstream-cluster .name { font-weight: 600; min-width: 8em; overflow-wrap: anywhere; }
.sparkstream-cluster .role { min-width: 9em; }
.sparkstream-cluster .cuts { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin-left: 8px; }
.sparkstream-cluster button, .sparkstream-cluster select {
  font: inherit; color: inherit; background: var(--jp-layout-color2, #eee); height: 28px; padding: 0 9px; max-width: 260px;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  border: 1px solid var(--jp-border-color1, #bbb); border-radius: 3px; cursor: pointer; }
.sparkstream-cluster button:hover { border-color: currentColor; }
.sparkstream-cluster button[aria-disabled=true] { opacity: .45; cursor: default; border-color: var(--jp-border-color1, #bbb); }
.sparkstream-cluster button:focus-visible, .sparkstream-cluster select:focus-visible {
  outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-cluster svg { display: block; max-width: 100%; height: auto; color: var(--jp-ui-font-color1, #444) !important; }
.sparkstream-cluster .said { margin: 4px 0; padding: 4px 10px; border-left: 5px solid var(--jp-brand-color1, #1976d2); }
.sparkstream-cluster .failed { margin: 4px 0; color: var(--jp-error-color1, #b00); }
.sparkstream-cluster .said:empty, .sparkstream-cluster .failed:empty { display: none; }
.sparkstream-cluster .stretch, .sparkstream-cluster .clock { display: flex; gap: 6px; align-items: center; margin-top: 8px; }
.sparkstream-cluster .log, .sparkstream-cluster .tables { overflow-x: auto; }
.sparkstream-cluster .log td:last-child { white-space: normal !important; min-width: 18em; }
.sparkstream-cluster.waiting .map, .sparkstream-cluster.waiting .timeline { opacity: .55; }
.sparkstream-ended .controls, .sparkstream-ended .clock, .sparkstream-ended .stretch { display: none; }
`;

function create(root, send, width) {
  make("style", "", root, { textContent: STYLE });
  const view = make("div", "sparkstream-cluster", root);
  const head = make("div", "head", view);
  const map = make("div", "map", view);
  const controls = make("div", "controls", view);
  const clock = make("div", "clock", view, { textContent: "move the clock" });
  const said = make("div", "said", view);
  said.setAttribute("role", "status");
  const failed = make("div", "failed", view);
  failed.setAttribute("role", "alert");
  const chosen = make("label", "stretch", view, { textContent: "time line" });
  const stretch = make("select", "", chosen);
  const timeline = make("div", "timeline", view);
  const log = make("div", "log", view);
  const tables = make("div", "tables", view);

  let waiting;
  const ask = (message) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => view.classList.add("waiting"), 400);
    send(message);
  };
  stretch.onchange = () => ask({ do: "stretch", stretch: stretch.value });

  let rows = []; // {name, role, buttons} by node, made anew where the nodes or their buttons are others
  let shape = "";
  const build = (nodes) => {
    controls.replaceChildren();
    rows = nodes.map((node) => {
      const row = make("div", "node", controls);
      row.setAttribute("role", "group");
      row.setAttribute("aria-label", node.name);
      make("span", "name", row, { textContent: node.name });
      const role = make("span", "role", row);
      let cuts;
      const buttons = node.actions.map((action) => {
        if (action.kind === "cut" && !cuts) cuts = make("span", "cuts", row, { textContent: "cut off 30 s from" });
        const button = make("button", action.kind, cuts ?? row, { type: "button", textContent: action.label });
        button.setAttribute("aria-label", action.title);
        button.onclick = () => {
          if (button.getAttribute("aria-disabled") === "true") return;
          ask({ do: "act", kind: action.kind, node: node.name, other: action.other });
        };
        return button;
      });
      return { row, role, buttons };
    });
  };

  let former = {};
  const set = (element, key, state) => { if (state[key] !== former[key]) element.innerHTML = state[key]; };
  return (state) => {
    if (!state.serial) return;
    clearTimeout(waiting);
    view.classList.remove("waiting");
    const wanted = JSON.stringify(state.nodes.map((n) => [n.name, n.actions.map((a) => [a.kind, a.other])]));
    if (wanted !== shape) {
      shape = wanted;
      build(state.nodes);
    }
    state.nodes.forEach((node, i) => {
      const { row, role, buttons } = rows[i];
      row.style.setProperty("--role", node.colour);
      role.textContent = node.role;
      // Not `disabled`: a button that was pressed keeps the focus, and its tip says why it can do nothing now.
      node.actions.forEach((action, k) => {
        buttons[k].setAttribute("aria-disabled", String(Boolean(action.refused)));
        buttons[k].title = action.refused || action.title;
      });
    });
    if (clock.children.length !== state.steps.length) {
      for (const by of state.steps) {
        const button = make("button", "step", clock, { type: "button", textContent: by });
        button.setAttribute("aria-label", `Move the app's clock by ${by}, with no event`);
        button.onclick = () => ask({ do: "advance", by });
      }
    }
    if (stretch.options.length !== state.stretches.length) stretch.replaceChildren(...state.stretches.map((s) => new Option(s, s)));
    stretch.value = state.stretch;
    chosen.hidden = !state.timeline;
    set(head, "head", state);
    set(map, "map", state);
    set(timeline, "timeline", state);
    set(log, "log", state);
    if (state.tables !== former.tables) {
      const open = tables.querySelector("details")?.open;
      tables.innerHTML = state.tables;
      if (open) tables.querySelector("details").open = true;
    }
    if (said.textContent !== state.said) said.textContent = state.said;
    if (failed.textContent !== state.failed) failed.textContent = state.failed;
    former = state;
  };
}
