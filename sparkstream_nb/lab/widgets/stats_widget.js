// The figures of an app. Its numbers, sparklines and tables come from Python as HTML, with all texts escaped.

const STYLE = `
.sparkstream-stats { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; }
.sparkstream-stats .failed { color: var(--jp-error-color1, #b00); }
.sparkstream-stats .failed:empty { display: none; }
.sparkstream-stats .tables { overflow-x: auto; }
`;

function create(root) {
  make("style", "", root, { textContent: STYLE });
  const view = make("div", "sparkstream-stats", root);
  const failed = make("div", "failed", view);
  failed.setAttribute("role", "alert");
  const places = { head: make("div", "head", view), tiles: make("div", "tiles", view), tables: make("div", "tables", view) };
  let former = {};
  return (state) => {
    if (!state.serial) return;
    for (const [name, place] of Object.entries(places)) if (state[name] !== former[name]) place.innerHTML = state[name];
    if (failed.textContent !== state.failed) failed.textContent = state.failed;
    former = state;
  };
}
