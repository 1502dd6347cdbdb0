// A result that is read again regularly. It comes from Python as HTML, with all texts escaped.

function create(root) {
  const failed = make("div", "failed", root);
  failed.setAttribute("role", "alert");
  const place = make("div", "renewed", root);
  let former = "";
  return (state) => {
    if (!state.serial) return;
    if (state.html !== former) place.innerHTML = former = state.html;
    failed.textContent = state.failed;
  };
}
