// All apps at a glance. They come from Python as HTML, with all texts escaped.

function create(root) {
  const failed = make("div", "failed", root);
  failed.setAttribute("role", "alert");
  const place = make("div", "overview", root);
  let former = "";
  return (state) => {
    if (!state.serial) return;
    if (state.overview !== former) place.innerHTML = former = state.overview;
    failed.textContent = state.failed;
  };
}
