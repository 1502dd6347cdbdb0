// The graph of a running app. Its picture comes from Python as HTML, with all texts escaped; rates are put in as texts.

const STYLE = `
.sparkstream-graph { color: var(--jp-ui-font-color1, #444); font: 13px system-ui, sans-serif; }
.sparkstream-graph .picture { overflow-x: auto; min-height: 60px; }
.sparkstream-graph .picture svg { max-width: none; }
.sparkstream-graph .sparkstream-edge text { font-variant-numeric: tabular-nums; }
.sparkstream-graph .sparkstream-edge.flows text { fill: #0b5394; font-weight: 600; }
.sparkstream-graph .sparkstream-edge.flows polyline { stroke: #0072b2; stroke-width: 1.6; }
.sparkstream-graph .failed { color: var(--jp-error-color1, #b00); }
.sparkstream-graph .failed:empty { display: none; }
`;

function create(root, send, width, file) {
  make("style", "", root, { textContent: STYLE });
  const view = make("div", "sparkstream-graph", root);
  const failed = make("div", "failed", view);
  failed.setAttribute("role", "alert");
  const picture = make("div", "picture", view);
  let edges, last;
  function draw() {
    for (const [i, edge] of (edges ?? []).entries()) {
      const text = edge.querySelector("text");
      if (text) put(text, last.labels[i]);
      edge.classList.toggle("flows", last.flows[i]);
    }
  }
  return (state) => {
    if (!state.serial) return;
    last = state;
    put(failed, state.failed);
    if (edges) return draw();
    edges = [];
    file("graph").then((bytes) => {
      picture.innerHTML = new TextDecoder().decode(bytes);
      edges = [...picture.querySelectorAll(".sparkstream-edge")];
      draw();
    });
  };
}
