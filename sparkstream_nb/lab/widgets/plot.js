// A picture by Plotly, drawn again with each state. Plotly's script comes from the kernel, once for a page, and from
// nowhere else. Texts in a figure are escaped by the kernel; "currentColor" in it is the page's own.

const PLOT_STYLE = `
.sparkstream-plot { color: var(--jp-ui-font-color1, #444); background: var(--jp-layout-color0, #fff);
  border: 0 solid var(--jp-border-color2, #ddd); min-height: 120px; }
.sparkstream-plot:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-said { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
`;
const PLOT_LOADING = 30000; // ms until Plotly's script is asked for again

// Plotly's script, once for a page: a promise of its module.
function loadPlotly(file) {
  return (window.sparkstreamPlotly ??= (async () => {
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("the kernel did not send Plotly")), PLOT_LOADING));
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

// ms since 1970 of a place on an axis of times, which Plotly gives as a text in UTC.
const msOf = (at) => typeof at === "number" ? at : Date.parse(at.length > 10 ? at.replace(" ", "T") + "Z" : at);

// The text of a name or a hover text, which the kernel escapes.
const plain = (text) => text.replace(/&(lt|gt|amp|#123);/g, (_, c) => ({ lt: "<", gt: ">", amp: "&", "#123": "{" })[c]);

// Draws figures into `parent`. `on`: what a person does, {zoom(start, end), all(), pick(key), select(range), name(text)};
// without `zoom` the page zooms by itself, with it the kernel sends another figure. `select` gets a rectangle that was
// drawn, {start, end, low, high}: times in ms, heights as the vertical axis has them; `name` a name of the legend, of a
// picture that is drawn with `namesSelect`.
function createPlot(parent, width, file, on = {}) {
  make("style", "", parent, { textContent: PLOT_STYLE });
  const plot = make("div", "sparkstream-plot", parent, { textContent: "Loading the picture…", tabIndex: 0 });
  plot.setAttribute("role", "group");
  const said = make("div", "sparkstream-said", parent);
  said.setAttribute("aria-live", "polite");

  let namesSelect = false;
  let Plotly, text, title = "", revision = 0, cursor = -1;
  function themed() {
    const own = getComputedStyle(plot);
    const figure = JSON.parse(text.replaceAll('"currentColor"', JSON.stringify(own.color)));
    const { layout } = figure;
    delete layout.template;
    for (const [name, axis] of Object.entries(layout)) {
      if (!/^[xy]axis\d*$/.test(name)) continue;
      // What the kernel sends is the range, wherever the page had zoomed to.
      if (on.zoom) axis.uirevision = revision;
      if (name[0] === "y" && !on.zoomsValues) axis.fixedrange = true;
      Object.assign(axis, { gridcolor: own.borderTopColor, linecolor: own.borderTopColor, zerolinecolor: own.borderTopColor });
    }
    Object.assign(layout, {
      width: Math.max(200, width()), paper_bgcolor: own.backgroundColor, plot_bgcolor: "rgba(0,0,0,0)",
      dragmode: plot.layout?.dragmode ?? "zoom", selections: [], selectionrevision: revision,
      selectdirection: layout.yaxis?.tickmode === "array" ? "any" : "h", font: { ...layout.font, color: own.color },
      hoverlabel: { ...layout.hoverlabel, bgcolor: own.backgroundColor, bordercolor: own.color, font: { color: own.color, size: 12 } },
    });
    return figure;
  }
  const config = {
    displaylogo: false, showTips: false, doubleClick: on.zoom ? false : "reset",
    modeBarButtons: [[...(on.select ? ["select2d"] : []), "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", on.zoom ? "autoScale2d" : "resetScale2d", "toImage"]],
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
    if (!Plotly || !text || drags) return;
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
    revision++;
    const { data, layout } = themed();
    title = layout.title?.text ?? "";
    plot.setAttribute("aria-label", `${title.replaceAll("<br>", " ")}. The arrow keys go through its marks.`);
    await Plotly.react(plot, data, layout, { ...config, toImageButtonOptions: { format: "png", scale: 2, filename: fileName() } });
    if (begun) return;
    begun = true;
    plot.on("plotly_click", ({ points: [point] }) => { if (point?.customdata !== undefined) on.pick?.(point.customdata); });
    plot.on("plotly_doubleclick", () => { if (plot.layout.dragmode !== "select") on.all?.(); });
    plot.on("plotly_deselect", () => on.unselect?.());
    plot.on("plotly_selected", (selection) => {
      const { x, y } = selection?.range ?? {};
      if (!x || !on.select) return;
      const [start, end] = x.map(msOf).sort((a, b) => a - b);
      const [low, high] = y ?? [0, 0];
      if (Number.isFinite(start) && Number.isFinite(end)) on.select({ start, end, low, high });
    });
    plot.on("plotly_legendclick", ({ curveNumber }) => {
      if (namesSelect) on.name(plain(plot.data[curveNumber].name));
      return !namesSelect;
    });
    plot.on("plotly_legenddoubleclick", () => !namesSelect);
    plot.on("plotly_relayout", (change) => {
      if (!on.zoom) return;
      if (change["xaxis.autorange"]) return on.all?.();
      const [start, end] = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      const range = [start, end].map((at) => at === undefined ? NaN : msOf(at));
      if (range.every(Number.isFinite)) on.zoom(Math.min(...range), Math.max(...range));
    });
  }
  const fileName = () => title.replace(/<[^>]*>/g, " ").replace(/[^\w.-]+/g, "_").slice(0, 80) || "picture";

  // The marks in the order of their axes, for people who use keys.
  const marks = () => plot.data.flatMap((trace, curveNumber) =>
    (Array.isArray(trace.hovertext) ? trace.hovertext : []).map((words, pointNumber) => ({
      curveNumber, pointNumber, words, key: trace.customdata?.[pointNumber],
    }))).filter(({ words }) => words);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!begun || (!step && event.key !== "Enter" && event.key !== " ")) return;
    const all = marks();
    if (!all.length) return;
    event.preventDefault();
    event.stopPropagation();
    if (!step) return all[cursor]?.key === undefined ? undefined : on.pick?.(all[cursor].key);
    cursor = cursor < 0 && step < 0 ? all.length - 1 : (cursor + step + all.length) % all.length;
    const { curveNumber, pointNumber, words } = all[cursor];
    Plotly.Fx.hover(plot, [{ curveNumber, pointNumber }]);
    put(said, plain(words.replaceAll("<br>", "; ")));
  });

  let loading;
  const load = () => (loading ??= loadPlotly(file).then((module) => { Plotly = module; redraw(); }, (error) => {
    loading = undefined;
    if (!begun) plot.textContent = `The picture cannot be drawn: ${error.message}`;
  }));
  load(); // it takes a second or two
  // The theme's style sheet may come after the attribute that names the theme.
  const recolour = () => { if (parent.isConnected) redraw(); };
  new MutationObserver(() => { recolour(); setTimeout(recolour, 500); })
    .observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });

  return {
    draw(figure, selects = false) {
      if (figure !== text) cursor = -1;
      namesSelect = selects;
      text = figure;
      load();
      redraw();
    },
    save(format, filename) {
      if (begun) Plotly.downloadImage(plot, { format, filename, width: plot.layout.width, height: plot.layout.height, scale: format === "png" ? 2 : 1 });
    },
  };
}
