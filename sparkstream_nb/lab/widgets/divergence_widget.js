// The controls of the time line of alerts. The picture itself comes from Python as SVG.

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
.sparkstream-timeline button:focus-visible, .sparkstream-timeline select:focus-visible,
.sparkstream-timeline .mark:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-timeline .picture { position: relative; user-select: none; }
.sparkstream-timeline .picture svg { display: block; width: 100%; height: auto; color: var(--jp-ui-font-color1, #444) !important; }
.sparkstream-timeline .mark { cursor: pointer; }
.sparkstream-timeline .mark:hover, .sparkstream-timeline .mark.pinned { filter: drop-shadow(0 0 2px currentColor); }
.sparkstream-timeline .failed { color: var(--jp-error-color1, #b00); font-size: 12px; margin: 2px 0 4px; }
.sparkstream-timeline .tip { position: absolute; pointer-events: none; white-space: pre-wrap; max-width: 460px; padding: 6px 9px;
  z-index: 9; background: var(--jp-layout-color1, #fff); border: 1px solid var(--jp-border-color1, #bbb); border-radius: 3px;
  box-shadow: 0 1px 5px rgba(0,0,0,.25); font-size: 12px; line-height: 1.45; }
.sparkstream-timeline .tip::first-line { font-weight: 600; }
.sparkstream-timeline .drag { position: absolute; pointer-events: none; background: currentColor; opacity: .15; }
.sparkstream-timeline .cause { overflow-x: auto; margin-top: 4px; }
.sparkstream-timeline.waiting .picture { opacity: .55; }
.sparkstream-ended .controls { display: none; }
`;

function create(root, send, width) {
  const make = (tag, name, parent, more = {}) => {
    const made = Object.assign(document.createElement(tag), { className: name }, more);
    parent.append(made);
    return made;
  };
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
  const canvas = make("div", "", picture);
  const cause = make("div", "cause", view);

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

  pointer(picture, view, ask);

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
    if (state.picture !== former.picture) canvas.innerHTML = state.picture;
    if (state.cause !== former.cause) cause.innerHTML = state.cause;
    for (const mark of canvas.querySelectorAll(".mark")) {
      const pinned = mark.dataset.mark === String(state.pinned);
      mark.classList.toggle("pinned", pinned);
      mark.setAttribute("aria-pressed", String(pinned));
    }
    former = state;
  };
}

// What a mark stands for, under the pointer; a click that pins it; a stretch of time, by dragging.
function pointer(picture, view, ask) {
  let tip, drag, from;
  const drop = () => { tip?.remove(); tip = undefined; };
  const place = (e) => {
    const box = picture.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top, box.width];
  };
  const share = (x) => {
    const svg = picture.querySelector("svg");
    return (x / svg.getBoundingClientRect().width) * svg.viewBox.baseVal.width;
  };
  picture.addEventListener("pointermove", (e) => {
    const mark = e.target.closest?.(".mark");
    const [x, y, wide] = place(e);
    if (drag) {
      drag.style.left = Math.min(x, from) + "px";
      drag.style.width = Math.abs(x - from) + "px";
    }
    if (!mark || (drag && Math.abs(x - from) > 4)) return drop();
    if (!tip) picture.append((tip = Object.assign(document.createElement("div"), { className: "tip" })));
    tip.textContent = mark.dataset.values;
    const left = x + 14 + tip.offsetWidth > wide ? x - 14 - tip.offsetWidth : x + 14;
    tip.style.left = Math.max(0, left) + "px";
    tip.style.top = Math.max(0, y + 12) + "px";
  });
  picture.addEventListener("pointerleave", drop);
  const pin = (mark) => ask({ do: "pin", mark: Number(mark.dataset.mark) });
  picture.addEventListener("keydown", (e) => {
    const mark = e.target.closest?.(".mark");
    if (mark && (e.key === "Enter" || e.key === " ")) { e.preventDefault(); pin(mark); }
  });
  let pressed;
  picture.addEventListener("pointerdown", (e) => {
    if (e.button || !e.target.closest?.("svg")) return;
    pressed = e.target.closest(".mark");
    from = place(e)[0];
    drag = Object.assign(document.createElement("div"), { className: "drag" });
    Object.assign(drag.style, { top: 0, height: "100%", left: from + "px", width: 0 });
    picture.append(drag);
  });
  const end = (e) => {
    if (!drag) return;
    drag.remove();
    drag = undefined;
    const to = place(e)[0];
    if (Math.abs(to - from) > 8) ask({ do: "zoom", from: share(Math.min(from, to)), to: share(Math.max(from, to)) });
    else if (pressed) pin(pressed);
  };
  picture.addEventListener("pointerup", end);
  picture.addEventListener("dblclick", (e) => { if (!e.target.closest?.(".mark")) ask({ do: "all" }); });
}
