// The end of a stream. Values of events are put into the page as texts, never as HTML.

const STYLE = `
.sparkstream-tail { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; }
.sparkstream-tail .bar { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 4px 0; }
.sparkstream-tail .name { font-weight: 600; overflow-wrap: anywhere; }
.sparkstream-tail .muted { color: var(--jp-ui-font-color2, #666); font-variant-numeric: tabular-nums; }
.sparkstream-tail button {
  font: inherit; color: inherit; background: var(--jp-layout-color2, #eee); height: 28px; padding: 0 9px; min-width: 6em;
  border: 1px solid var(--jp-border-color1, #bbb); border-radius: 3px; cursor: pointer; }
.sparkstream-tail button:hover { border-color: currentColor; }
.sparkstream-tail button:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 1px; }
.sparkstream-tail .rows { overflow-x: auto; }
.sparkstream-tail td, .sparkstream-tail th { white-space: nowrap; font-variant-numeric: tabular-nums; }
.sparkstream-tail .number { font-size: 300%; line-height: 1.2; font-variant-numeric: tabular-nums; }
.sparkstream-tail.paused .rows, .sparkstream-tail.paused .number { opacity: .6; }
.sparkstream-tail .note { min-height: 1.4em; margin: 4px 0; }
.sparkstream-tail .failed { color: var(--jp-error-color1, #b00); }
.sparkstream-tail .failed:empty { display: none; }
.sparkstream-ended .sparkstream-tail button { display: none; }
`;

function create(root, send) {
  make("style", "", root, { textContent: STYLE });
  const view = make("div", "sparkstream-tail", root);
  const bar = make("div", "bar", view);
  const button = make("button", "pause", bar, { type: "button" });
  const name = make("span", "name", bar);
  const head = make("span", "muted", bar);
  const failed = make("div", "failed", view);
  failed.setAttribute("role", "alert");
  const label = make("div", "muted", view);
  const number = make("div", "number", view);
  const table = make("table", "", make("div", "rows", view));
  const columns = make("tr", "", make("thead", "", table));
  const body = make("tbody", "", table);
  const note = make("div", "note muted", view);

  const fit = (parent, tag, many) => {
    while (parent.children.length > many) parent.lastElementChild.remove();
    while (parent.children.length < many) parent.append(document.createElement(tag));
  };
  const fill = (row, tag, texts, right) => {
    fit(row, tag, texts.length);
    texts.forEach((text, i) => {
      put(row.children[i], text);
      row.children[i].style.textAlign = right[i] ? "right" : "left"; // JupyterLab has a rule of its own for cells
    });
  };
  body.ondblclick = ({ target }) => {
    const cell = target.closest("td");
    if (cell) send({ do: "select", row: cell.parentElement.rowIndex - 1, column: cell.cellIndex, text: cell.textContent });
  };
  body.title = "two clicks on a value select its events in all pictures of this app";
  let paused = false;
  button.onclick = () => send({ do: paused ? "resume" : "pause" });
  return (state) => {
    if (!state.serial) return;
    paused = state.paused;
    view.classList.toggle("paused", paused);
    put(button, paused ? "Resume" : "Pause");
    put(name, state.name);
    put(head, state.head);
    put(failed, state.failed);
    put(note, state.note);
    label.hidden = number.hidden = !state.number;
    put(label, state.number?.name ?? "");
    put(number, state.number?.value ?? "");
    table.hidden = !state.columns.length;
    fill(columns, "th", state.columns, state.right);
    fit(body, "tr", state.rows.length);
    state.rows.forEach((row, i) => fill(body.children[i], "td", row, state.right));
  };
}
