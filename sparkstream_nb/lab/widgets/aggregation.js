// The controls of an aggregation's picture.

const STYLE = `
.sparkstream-aggregation { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; position: relative; }
.sparkstream-aggregation .controls { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 2px 0 6px; }
.sparkstream-aggregation .last { display: flex; gap: 6px; }
.sparkstream-aggregation .durations { display: flex; }
.sparkstream-aggregation button, .sparkstream-aggregation select {
  font: inherit; color: inherit; background: var(--jp-layout-color2, #eee); height: 28px; padding: 0 8px;
  border: 1px solid var(--jp-border-color1, #bbb); border-radius: 0; cursor: pointer; }
.sparkstream-aggregation select, .sparkstream-aggregation input.key { max-width: 170px; padding: 0 4px; }
.sparkstream-aggregation .keys { display: contents; }
.sparkstream-aggregation label { display: flex; gap: 5px; align-items: center; }
.sparkstream-aggregation input.key { font: inherit; height: 26px; width: 130px; border: 1px solid var(--jp-border-color1, #bbb);
  background: var(--jp-layout-color1, #fff); color: inherit; }
.sparkstream-aggregation .absent { font-size: 12px; font-style: italic; margin: 2px 0 4px; }
.sparkstream-aggregation .durations button + button { border-left: 0; }
.sparkstream-aggregation button[aria-pressed=true] { background: var(--jp-brand-color1, #1976d2); color: #fff; }
.sparkstream-aggregation button[aria-disabled=true] { opacity: .4; cursor: default; }
.sparkstream-aggregation button:focus-visible, .sparkstream-aggregation select:focus-visible {
  outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-aggregation .note, .sparkstream-aggregation .failed { font-size: 12px; margin: 2px 0 4px; }
.sparkstream-aggregation .note { color: var(--jp-ui-font-color2, #666); }
.sparkstream-aggregation .failed { color: var(--jp-error-color1, #b00); }
.sparkstream-aggregation .busy { display: none; width: 16px; height: 16px; border-radius: 50%;
  border: 2px solid var(--jp-border-color1, #bbb); border-top-color: var(--jp-brand-color1, #1976d2);
  animation: sparkstream-turn 1s linear infinite; }
.sparkstream-aggregation.waiting .busy { display: block; }
.sparkstream-aggregation.waiting .picture { opacity: .55; }
.sparkstream-ended .controls { display: none; }
@keyframes sparkstream-turn { to { transform: rotate(360deg); } }
`;

function create(root, send, width, file) {
  make("style", "", root, { textContent: STYLE });
  const view = make("div", "sparkstream-aggregation", root);
  const controls = make("div", "controls", view);
  const durations = make("div", "durations", controls, { role: "group", ariaLabel: "duration" });
  const measure = make("select", "measure", controls, { ariaLabel: "measure" });
  const keys = make("div", "keys", controls);
  const button = (name, label, title) => make("button", name, controls, { textContent: label, title, type: "button" });
  const earlier = button("earlier", "‹ earlier", "the buckets before these");
  const later = button("later", "later ›", "the buckets after these");
  const latest = button("latest", "latest", "the latest buckets again (or click the picture twice)");
  const all = button("all", "whole time", "all buckets, by the finest duration that leaves room for them");
  const stacked = button("stacked", "stacked", "the shards' bars stand on one another, or side by side");
  const asWso2 = button("as-wso2", "as WSO2", "hatches what WSO2's servers would not show, as it is still open on a node");
  const refresh = button("refresh", "↻", "read the aggregation again");
  make("div", "last", controls).append(asWso2, refresh); // ↻ has no line of its own
  make("div", "busy", controls, { title: "reading" });
  const failed = make("div", "failed", view, { role: "status" });
  const picture = make("div", "picture", view);
  const empty = make("div", "", picture);
  const plot = createPlot(make("div", "", picture), width, file, {
    zoom: (start, end) => ask({ do: "range", start, end }),
    all: () => ask({ do: "latest" }),
    select: (range) => ask({ do: "select", ...range }),
    unselect: () => ask({ do: "unselect" }),
    name: (name) => ask({ do: "select", name }),
  });
  const note = make("div", "note", view);
  const absent = make("div", "absent", view, { role: "status" });
  const numbers = make("details", "", view);
  make("summary", "", numbers, { textContent: "table" });
  const table = make("div", "", numbers);

  let waiting; // shown only where an answer takes a while
  const ask = (message) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => view.classList.add("waiting"), 150);
    send(message);
  };
  measure.onchange = () => ask({ do: "choose", measure: measure.value });
  for (const b of [earlier, later, latest, all, refresh]) {
    b.onclick = () => { if (b.getAttribute("aria-disabled") !== "true") ask({ do: b.className }); };
  }
  // Not `disabled`: a button that was pressed keeps the focus.
  const disable = (b, disabled) => b.setAttribute("aria-disabled", String(disabled));
  stacked.onclick = () => ask({ do: "choose", stacked: stacked.getAttribute("aria-pressed") !== "true" });
  asWso2.onclick = () => ask({ do: "choose", asWso2: asWso2.getAttribute("aria-pressed") !== "true" });
  numbers.ontoggle = () => { if (numbers.open !== former.table) ask({ do: "choose", table: numbers.open }); };

  const fill = (select, labels, chosen) => {
    if (select.dataset.labels !== JSON.stringify(labels)) {
      select.dataset.labels = JSON.stringify(labels);
      select.replaceChildren(...labels.map(([value, label]) => new Option(label, value)));
    }
    select.value = chosen;
    select.hidden = labels.length < 2;
  };

  let former = {};
  return (state) => {
    clearTimeout(waiting);
    view.classList.remove("waiting");
    if (durations.dataset.names !== state.durations.join()) {
      durations.dataset.names = state.durations.join();
      durations.replaceChildren();
      for (const name of state.durations) {
        const b = make("button", "", durations, { textContent: name, title: "one bar for each " + name, type: "button" });
        b.onclick = () => ask({ do: "choose", per: name });
      }
    }
    for (const b of durations.children) b.setAttribute("aria-pressed", String(b.textContent === state.per));
    fill(measure, state.measures.map((name) => [name, name]), state.measure);
    drawKeys(keys, state.keys, ask);
    disable(earlier, !state.earlier);
    disable(later, !state.later);
    hide(latest, !state.moved, all);
    hide(stacked, !state.stacks, all);
    stacked.setAttribute("aria-pressed", String(state.stacked));
    hide(asWso2, !state.open, all);
    asWso2.setAttribute("aria-pressed", String(state.asWso2));
    failed.textContent = state.failed;
    absent.textContent = state.absent;
    if (state.empty !== former.empty) empty.innerHTML = state.empty;
    empty.nextElementSibling.hidden = Boolean(state.empty);
    if (state.figure) plot.draw(state.figure, state.namesSelect);
    note.textContent = state.note;
    numbers.hidden = !state.note;
    numbers.open = state.table;
    if (state.numbers !== former.numbers) table.innerHTML = state.numbers;
    former = state;
  };
}

// For each group-by attribute a menu of its values, or, where they are too many, a field with suggestions.
let lists = 0;
function drawKeys(parent, keys, ask) {
  const kinds = JSON.stringify(keys.map((key) => [key.name, key.typedIn]));
  if (parent.dataset.kinds !== kinds) {
    parent.dataset.kinds = kinds;
    parent.replaceChildren(...keys.map((key, number) => {
      const label = Object.assign(document.createElement("label"), { textContent: key.name });
      const own = document.createElement(key.typedIn ? "input" : "select");
      own.className = "key";
      own.ariaLabel = key.name;
      label.append(own);
      if (key.typedIn) {
        const list = Object.assign(document.createElement("datalist"), { id: `sparkstream-values-${++lists}` });
        own.setAttribute("list", list.id);
        own.placeholder = key.every ? "all" : "";
        label.append(list);
        let typing;
        own.oninput = () => {
          clearTimeout(typing);
          typing = setTimeout(() => ask({ do: "suggest", key: number, text: own.value }), 250);
        };
        own.onchange = () => { clearTimeout(typing); ask({ do: "key", key: number, text: own.value }); };
      } else {
        own.onchange = () => ask({ do: "key", key: number, token: own.value });
      }
      return label;
    }));
  }
  keys.forEach((key, number) => {
    const own = parent.children[number].querySelector(".key");
    const options = [...(key.every && !key.typedIn ? [["", "all"]] : []), ...key.values];
    const target = key.typedIn ? own.nextElementSibling : own;
    if (target.dataset.options !== JSON.stringify(options)) {
      target.dataset.options = JSON.stringify(options);
      target.replaceChildren(...options.map(([value, label]) => key.typedIn ? new Option(label, label) : new Option(label, value)));
    }
    if (!key.typedIn) own.value = key.chosen;
    else if (document.activeElement !== own) own.value = key.label;
  });
}
