// Gives the code cells of notebooks that begin with `%%siddhi` the language SiddhiQL, those of `%siddhi` lines alone the
// language of these lines, and others the notebook's own.

// IPython skips blank lines before a magic.
const MAGIC = /^\s*%%siddhi(?![\w-])/;
const LINE = /^\s*%siddhi(?![\w-])/;
const REST = /^\s*(#|$)/;

/** Follows every notebook that is open or will be. `mimes` are the types of SiddhiQL, `text` and `lines`. */
export function followNotebooks(notebooks, languages, mimes) {
  const follow = (panel) => followNotebook(panel.content, languages, mimes);
  notebooks.forEach(follow);
  notebooks.widgetAdded.connect((_, panel) => follow(panel));
}

/** The type of a cell's text; undefined: the notebook's own. */
function typeOf(source, mimes) {
  if (MAGIC.test(source)) return mimes.text;
  const lines = source.split('\n').filter((line) => !REST.test(line));
  return lines.length && lines.every((line) => LINE.test(line)) ? mimes.lines : undefined;
}

function followNotebook(notebook, languages, mimes) {
  // JupyterLab sets the type of all code cells when the kernel is ready and when it changes, and that of a cell when it
  // is inserted. An editor shows the language that has loaded last, hence the wait for the one that SiddhiQL replaces.
  async function settle(cell) {
    const mime = typeOf(cell.sharedModel.getSource(), mimes);
    if (mime) {
      if (cell.mimeType === mime) return;
      await languages.getLanguage(cell.mimeType);
      if (typeOf(cell.sharedModel.getSource(), mimes) === mime) cell.mimeType = mime;
    } else if (Object.values(mimes).includes(cell.mimeType)) {
      cell.mimeType = notebook.codeMimetype;
    }
  }

  function followCell(cell) {
    if (cell.type !== 'code') return;
    cell.mimeTypeChanged.connect(settle);
    cell.sharedModel.changed.connect((_, change) => {
      if (change.sourceChange) settle(cell);
    });
    settle(cell);
  }

  function followModel() {
    const cells = notebook.model?.cells;
    if (!cells) return;
    for (const cell of cells) followCell(cell);
    cells.changed.connect((_, change) => {
      if (change.type === 'add') change.newValues.forEach(followCell);
    });
  }

  notebook.modelChanged.connect(followModel);
  followModel();
}
