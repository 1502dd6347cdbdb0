// The controls of the time line of alerts.

const STYLE = `
.sparkstream-timeline { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; }
.sparkstream-timeline .controls { display: flex; flex-wrap: wrap; gap: 10px; align-items: center; margin: 2px 0 6px; }
.sparkstream-timeline label { display: flex; gap: 6px; align-items: center; }
.sparkstream-timeline button, .sparkstream-timeline select {
  font: inherit; color: inherit; background: var(--jp-layout-color2, #eee); height: 28px; padding: 0 8px;
  border: 1px solid var(--jp-border-color1, #bbb); border-radius: 0; cursor: pointer; }
.sparkstream-timeline select { max-width: 220px; padding: 0 4px; }
.sparkstream-timeline input[type=range] { width: 130px; accent-color: var(--jp-brand-color1, #1976d2); }
.sparkstream-timeline output { min-width: 1.6em; }
.sparkstream-timeline button:focus-visible, .sparkstream-timeline select:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-timeline .failed { color: var(--jp-error-color1, #b00); font-size: 12px; margin: 2px 0 4px; }
.sparkstream-timeline .cause { overflow-x: auto; margin-top: 4px; }
.sparkstream-timeline.waiting .picture { opacity: .55; }
.sparkstream-ended .controls { display: none; }
`;

function create(root, send, width, file) {
  make("style", "", root, { textContent: STYLE });
  const view = make("div", "sparkstream-timeline", root);
  const controls = make("div", "controls", view);
  const labelled = (text) => {
    const label = make("label", "", controls);
    label.append(text);
    return label;
  };
  const query = make("select", "query", labelled("query"));
  const many = labelled("nodes");
  const nodes = make("input", "nodes", many, { type: "range", min: 1, max: 16 });
  const count = make("output", "", many);
  const routing = make("select", "routing", labelled("routing"));
  const recorded = make("button", "recorded", controls, { type: "button", textContent: "as it was", title: "the nodes and the routing of the deployment" });
  const all = make("button", "all", controls, { type: "button", textContent: "whole time", title: "from the first output to the last (or click the picture twice)" });
  const failed = make("div", "failed", view, { role: "status" });
  const picture = make("div", "picture", view);
  const plot = createPlot(picture, width, file, {
    zoom: (start, end) => ask({ do: "zoom", start, end }),
    all: () => ask({ do: "all" }),
    pick: (mark) => ask({ do: "pin", mark }),
    select: (range) => ask({ do: "select", ...range }),
    unselect: () => ask({ do: "unselect" }),
  });
  const cause = make("div", "cause", view);
  const below = make("div", "below", view);
  const drawMoment = createMoment(below, (message) => ask({ do: "moment", message }));

  let waiting;
  const ask = (message) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => view.classList.add("waiting"), 200);
    send(message);
  };
  query.onchange = () => ask({ do: "query", stream: query.value });
  nodes.oninput = () => (count.textContent = nodes.value);
  // An arrow is held down over several numbers, and a picture of an earlier one does not move the slider back.
  let wanted = null, sliding;
  nodes.onchange = () => {
    wanted = Number(nodes.value);
    clearTimeout(sliding);
    sliding = setTimeout(() => ask({ do: "route", nodes: wanted }), 250);
  };
  routing.onchange = () => ask({ do: "route", routing: routing.value });
  recorded.onclick = () => {
    wanted = null;
    clearTimeout(sliding);
    ask({ do: "recorded" });
  };
  all.onclick = () => ask({ do: "all" });

  const fill = (select, options, chosen) => {
    if (select.dataset.options !== JSON.stringify(options)) {
      select.dataset.options = JSON.stringify(options);
      select.replaceChildren(...options.map(([value, label]) => new Option(label, value)));
    }
    select.value = chosen;
  };

  let former = {};
  return (state) => {
    if (!state.serial) return;
    clearTimeout(waiting);
    view.classList.remove("waiting");
    fill(query, state.queries, state.stream);
    query.parentElement.hidden = state.queries.length < 2;
    fill(routing, state.routings.map((r) => [r, r]), state.routing);
    if (wanted === state.nodes || state.failed) wanted = null;
    nodes.max = Math.max(16, state.nodes);
    if (wanted === null) count.textContent = nodes.value = state.nodes;
    hide(recorded, !state.changed, nodes);
    hide(all, !state.zoomed, nodes);
    failed.textContent = state.failed;
    plot.draw(state.figure);
    if (state.cause !== former.cause) cause.innerHTML = state.cause;
    below.hidden = !state.moment;
    if (state.moment) drawMoment({ ...state.moment, serial: state.serial });
    former = state;
  };
}
