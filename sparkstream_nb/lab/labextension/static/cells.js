// Gives the code cells of notebooks that begin with `%%siddhi` the language SiddhiQL, and others the notebook's own.

// IPython skips blank lines before a magic.
const MAGIC = /^\s*%%siddhi(?![\w-])/;

/** Follows every notebook that is open or will be. `mime` is the type of SiddhiQL. */
export function followNotebooks(notebooks, languages, mime) {
  const follow = (panel) => followNotebook(panel.content, languages, mime);
  notebooks.forEach(follow);
  notebooks.widgetAdded.connect((_, panel) => follow(panel));
}

function followNotebook(notebook, languages, mime) {
  // JupyterLab sets the type of all code cells when the kernel is ready and when it changes, and that of a cell when it
  // is inserted. An editor shows the language that has loaded last, hence the wait for the one that SiddhiQL replaces.
  async function settle(cell) {
    if (MAGIC.test(cell.sharedModel.getSource())) {
      if (cell.mimeType === mime) return;
      await languages.getLanguage(cell.mimeType);
      if (MAGIC.test(cell.sharedModel.getSource())) cell.mimeType = mime;
    } else if (cell.mimeType === mime) {
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
