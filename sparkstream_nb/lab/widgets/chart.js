// A chart of a stream, with a bar to pause it and to save its picture or its points.

const STYLE = `
.sparkstream-chart { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; }
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
.sparkstream-chart .note { min-height: 1.4em; margin: 4px 0; }
.sparkstream-chart .failed { color: var(--jp-error-color1, #b00); }
.sparkstream-chart .failed:empty { display: none; }
.sparkstream-ended .sparkstream-chart .live { display: none; }
`;

function create(root, send, width, file) {
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
  const plot = createPlot(make("div", "plot", view), width, file, {
    zoom: (start, end) => send({ do: "zoom", start, end }),
    all: () => send({ do: "all" }),
    select: (range) => send({ do: "select", ...range }),
    unselect: () => send({ do: "unselect" }),
    name: (name) => send({ do: "select", name }),
    zoomsValues: true,
  });
  const note = make("div", "note muted", view);

  let state, paused = false;
  button.onclick = () => send({ do: paused ? "resume" : "pause" });
  all.onclick = () => send({ do: "all" });
  const save = (format) => {
    if (!state) return;
    const name = state.name.replace(/[^\w.-]+/g, "_");
    if (format !== "csv") plot.save(format, name);
    else download(`${name}.csv`, csv(state), "text/csv");
  };
  for (const [format, title] of [["png", "save the picture as PNG"], ["svg", "save the picture as SVG"], ["csv", "save the points that are shown as CSV"]])
    make("button", format, exports, { type: "button", textContent: format.toUpperCase(), title }).onclick = () => save(format);

  return (next) => {
    if (!next.serial) return;
    state = next;
    paused = next.paused;
    put(button, paused ? "Resume" : "Pause");
    hide(all, !next.zoomed, button);
    put(name, next.name);
    put(head, next.head);
    put(failed, next.failed);
    put(note, next.note);
    plot.draw(next.figure, next.namesSelect);
  };
}

// The points that are shown, as CSV. A spreadsheet would take a name that begins with one of =+-@ for a formula.
function csv({ series, xTitle, overTime }) {
  const quote = (text) => `"${text.replace(/^[=+\-@\t\r]/, "'$&").replace(/"/g, '""')}"`;
  const numbers = (view) => new Float64Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
  const timeText = (ms) => Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString().replace("T", " ").replace("Z", "") : null;
  const lines = [["series", xTitle, "value"].map(quote).join(",")];
  for (const { label, x, y } of series) {
    const [places, values] = [numbers(x), numbers(y)];
    places.forEach((place, i) => lines.push(`${quote(label)},${overTime ? timeText(place) : place},${values[i]}`));
  }
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
