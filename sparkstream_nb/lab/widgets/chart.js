// A Plotly chart of a stream. Plotly's script comes from the kernel, once for a page, and from nowhere else. Plotly reads
// a part of HTML in names: values of events are escaped before they get there.

const STYLE = `
.sparkstream-chart { color: var(--jp-ui-font-color1, #444); background: var(--jp-layout-color0, #fff);
  border: 0 solid var(--jp-border-color2, #ddd); font: 13px system-ui, sans-serif; }
.sparkstream-chart .bar { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 4px 0; }
.sparkstream-chart .name { font-weight: 600; overflow-wrap: anywhere; }
.sparkstream-chart .muted { color: var(--jp-ui-font-color2, #666); font-variant-numeric: tabular-nums; }
.sparkstream-chart .exports { margin-left: auto; display: flex; gap: 4px; }
.sparkstream-chart button {
  font: inherit; color: inherit; background: var(--jp-layout-color2, #eee); height: 28px; padding: 0 9px;
  border: 1px solid var(--jp-border-color1, #bbb); border-radius: 3px; cursor: pointer; }
.sparkstream-chart .pause { min-width: 6em; }
.sparkstream-chart button:hover { border-color: currentColor; }
.sparkstream-chart button:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-chart .plot { min-height: 380px; }
.sparkstream-chart .note { min-height: 1.4em; margin: 4px 0; }
.sparkstream-chart .failed { color: var(--jp-error-color1, #b00); }
.sparkstream-chart .failed:empty { display: none; }
.sparkstream-ended .sparkstream-chart .live { display: none; }
`;
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"];
const DASHES = ["solid", "dash", "dot", "longdashdot", "longdash"];
const HEIGHT = 380; // px
const LOADING = 30000; // ms until Plotly's script is asked for again

// Plotly's script, once for a page: a promise of its module.
function loadPlotly(file) {
  return (window.sparkstreamPlotly ??= (async () => {
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("the kernel did not send Plotly")), LOADING));
    const bytes = await Promise.race([file("plotly"), late]);
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const text = await new Response(unpacked).text();
    const parts = ["const module = { exports: {} }, exports = module.exports, define = undefined;\n", text, "\nexport default module.exports;"];
    const url = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
    const former = window.Plotly;
    try {
      return (await import(/* webpackIgnore: true */ url)).default;
    } finally {
      URL.revokeObjectURL(url);
      if (former) window.Plotly = former;
      else delete window.Plotly;
    }
  })().catch((error) => { window.sparkstreamPlotly = undefined; throw error; }));
}

const escapeText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%\{/g, "%&#123;");
const numbers = (view) => new Float64Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
// Plotly shows numbers on an axis of time in the browser's zone, and texts as they are.
const timeText = (ms) => Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString().replace("T", " ").replace("Z", "") : null;
const msOf = (at) => typeof at === "number" ? at : Date.parse(at.length > 10 ? at.replace(" ", "T") + "Z" : at);

function create(root, send, width, file) {
  const make = (tag, name, parent, more = {}) => {
    const made = Object.assign(document.createElement(tag), { className: name }, more);
    parent.append(made);
    return made;
  };
  make("style", "", root, { textContent: STYLE });
  const view = make("div", "sparkstream-chart", root);
  const bar = make("div", "bar", view);
  const button = make("button", "pause live", bar, { type: "button" });
  const all = make("button", "all live", bar, { type: "button", textContent: "All", title: "show the whole chart", hidden: true });
  const name = make("span", "name", bar);
  const head = make("span", "muted", bar);
  const exports = make("span", "exports", bar);
  const failed = make("div", "failed", view);
  failed.setAttribute("role", "alert");
  const plot = make("div", "plot", view, { textContent: "Loading the chart…" });
  const note = make("div", "note muted", view);

  let Plotly, state, shown, revision = 1;
  let paused = false;
  button.onclick = () => send({ do: paused ? "resume" : "pause" });
  all.onclick = () => { revision++; send({ do: "all" }); };
  const fileName = () => state.name.replace(/[^\w.-]+/g, "_");
  const picture = (format) => {
    const title = { text: escapeText(state.title), font: { size: 15 }, subtitle: { text: escapeText(state.note) } };
    const layout = { ...plot.layout, title, margin: { ...plot.layout.margin, t: 70 } };
    const size = { width: plot.layout.width, height: HEIGHT + 60, scale: format === "png" ? 2 : 1 };
    Plotly.downloadImage({ data: plot.data, layout }, { format, filename: fileName(), ...size });
  };
  const save = (format) => {
    if (!shown) return;
    if (format !== "csv") picture(format);
    else download(`${fileName()}.csv`, csv(shown, state), "text/csv");
  };
  for (const [format, title] of [["png", "save the picture as PNG"], ["svg", "save the picture as SVG"], ["csv", "save the points that are shown as CSV"]])
    make("button", format, exports, { type: "button", textContent: format.toUpperCase(), title }).onclick = () => save(format);

  const theme = () => {
    const own = getComputedStyle(view);
    return { ink: own.color, ground: own.backgroundColor, lines: own.borderTopColor };
  };

  function traces() {
    return shown.map(({ label, x, y }, i) => {
      const colour = COLOURS[i % COLOURS.length];
      const at = state.overTime ? Array.from(x, timeText) : x;
      const hover = `%{y}<br>%{x${state.overTime ? "|%Y-%m-%d %H:%M:%S.%L" : ""}}<extra>%{fullData.name}</extra>`;
      const same = { x: at, y, name: escapeText(label), uid: `line-${i}`, hovertemplate: hover, showlegend: true };
      if (state.kind === "bar") return { ...same, type: "bar", marker: { color: colour } };
      const mode = state.kind === "points" ? "markers" : x.length === 1 ? "lines+markers" : "lines";
      const dash = DASHES[Math.floor(i / COLOURS.length) % DASHES.length];
      return { ...same, type: "scatter", mode, line: { color: colour, dash, width: 1.5 }, marker: { color: colour, size: 5 } };
    });
  }

  function layout() {
    const { ink, ground, lines } = theme();
    const axis = { gridcolor: lines, zerolinecolor: lines, linecolor: lines, automargin: true };
    return {
      width: Math.max(200, width()), height: HEIGHT, uirevision: revision, paper_bgcolor: ground, plot_bgcolor: ground,
      font: { color: ink, size: 12 }, margin: { l: 60, r: 20, t: 16, b: 50 }, hovermode: "closest", barmode: "group",
      xaxis: { ...axis, title: { text: escapeText(state.xTitle) }, type: state.overTime ? "date" : "linear", autorange: true },
      yaxis: { ...axis, title: { text: escapeText(state.yTitle) }, autorange: true },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, showlegend: shown.length > 1,
      hoverlabel: { namelength: -1 }, dragmode: plot.layout?.dragmode ?? "zoom",
    };
  }
  const config = {
    displaylogo: false, showTips: false, doubleClick: "autosize", modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"]],
  };

  // A drawing while the user drags would move the axes under the pointer.
  let drags = false;
  plot.addEventListener("pointerdown", () => {
    drags = true;
    const ended = () => { drags = false; setTimeout(redraw, 100); };
    for (const event of ["pointerup", "pointercancel"]) window.addEventListener(event, ended, { capture: true, once: true });
  }, true);

  // One drawing at a time; those that are asked for meanwhile become one.
  let begun = false, drawing = false, again = false;
  async function redraw() {
    if (!Plotly || !state || !shown || drags) return;
    again = drawing;
    if (drawing) return;
    drawing = true;
    try {
      await draw();
    } finally {
      drawing = false;
    }
    if (again) redraw();
  }
  async function draw() {
    if (!begun) plot.textContent = "";
    await Plotly.react(plot, traces(), layout(), config);
    if (begun) return;
    begun = true;
    plot.on("plotly_relayout", (change) => {
      if (change["xaxis.autorange"]) send({ do: "all" });
      else if ("xaxis.range[0]" in change) zoom(change["xaxis.range[0]"], change["xaxis.range[1]"]);
      else if (change["xaxis.range"]) zoom(...change["xaxis.range"]);
    });
  }
  const zoom = (start, end) => {
    const range = [msOf(start), msOf(end)];
    if (range.every(Number.isFinite)) send({ do: "zoom", start: Math.min(...range), end: Math.max(...range) });
  };
  let loading;
  const load = () => (loading ??= loadPlotly(file).then((found) => { Plotly = found; redraw(); }, (error) => {
    loading = undefined;
    if (!begun) plot.textContent = `The chart cannot be drawn: ${error.message}`;
  }));
  // The theme's style sheet may come after the attribute that names the theme.
  const recolour = () => { if (root.isConnected) redraw(); };
  new MutationObserver(() => { recolour(); setTimeout(recolour, 500); })
    .observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });

  return (next) => {
    if (!next.serial) return;
    state = next;
    shown = next.series.map(({ label, x, y }) => ({ label, x: numbers(x), y: numbers(y) }));
    paused = next.paused;
    put(button, paused ? "Resume" : "Pause");
    hide(all, !next.zoomed, button);
    put(name, next.name);
    put(head, next.head);
    put(failed, next.failed);
    put(note, next.note);
    load();
    redraw();
  };
}

// The points that are shown, as CSV. A spreadsheet would take a name that begins with one of =+-@ for a formula.
function csv(shown, state) {
  const quote = (text) => `"${text.replace(/^[=+\-@\t\r]/, "'$&").replace(/"/g, '""')}"`;
  const lines = [["series", state.xTitle, "value"].map(quote).join(",")];
  for (const { label, x, y } of shown)
    for (let i = 0; i < x.length; i++) lines.push(`${quote(label)},${state.overTime ? timeText(x[i]) : x[i]},${y[i]}`);
  return lines.join("\r\n") + "\r\n";
}

function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
