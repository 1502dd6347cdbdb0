// A result whose pictures are live: its HTML, with a plot in the place of each image.

function create(root, send, width, file) {
  const view = document.createElement("div");
  view.className = "sparkstream-result";
  root.append(view);
  let shown, plots = [];
  return (state) => {
    if (!state.serial) return;
    if (state.html !== shown) {
      shown = state.html;
      view.innerHTML = state.html;
      plots = [...view.querySelectorAll("img.sparkstream-picture")].map((image) => {
        const place = document.createElement("div");
        image.replaceWith(place);
        return createPlot(place, width, file);
      });
    }
    state.figures.forEach((figure, i) => plots[i]?.draw(figure));
  };
}
