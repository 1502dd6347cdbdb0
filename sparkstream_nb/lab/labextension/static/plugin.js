// The JupyterLab plugins: SiddhiQL as a language of editors, the file type `.siddhi`, the cells of `%%siddhi`, and tables
// that can be sorted; and the side panel.

import { followNotebooks } from './cells.js';
import { colourLines } from './lines.js';
import { makePanel } from './panel.js';
import { siddhi, siddhiLines } from './siddhi.js';
import { followTables } from './tables.js';

export const MIME = 'text/x-siddhi';
const LINES = 'text/x-siddhi-lines'; // `%siddhi` lines of a notebook

// `fill` and the class are JupyterLab's way of icons that fit the theme.
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 22 22">
  <g class="jp-icon-contrast1 jp-icon-selectable" fill="#f57c00">
    <path d="M2 5.2h8.5a4.8 4.8 0 0 1 3.4 1.4l1.4 1.4H20v2h-5.5l-2-2a2.8 2.8 0 0 0-2-.8H2z"/>
    <path d="M2 16.8h8.5a4.8 4.8 0 0 0 3.4-1.4l1.4-1.4H20v-2h-5.5l-2 2a2.8 2.8 0 0 1-2 .8H2z"/>
    <circle cx="4" cy="11" r="1.6"/><circle cx="9" cy="11" r="1.6"/>
  </g>
</svg>`;

/** The plugins. `shared(name)` gives a package that JupyterLab shares. */
export const makePlugins = (shared) => Promise.all([makeLanguage(shared), makePanel(shared, ICON)]);

async function makeLanguage(shared) {
  const [codemirror, { INotebookTracker }, { LabIcon }, language, view, state, highlight] = await Promise.all(
    [
      '@jupyterlab/codemirror',
      '@jupyterlab/notebook',
      '@jupyterlab/ui-components',
      '@codemirror/language',
      '@codemirror/view',
      '@codemirror/state',
      '@lezer/highlight',
    ].map(shared),
  );
  const { EditorExtensionRegistry, IEditorExtensionRegistry, IEditorLanguageRegistry } = codemirror;
  const { LanguageSupport, StreamLanguage } = language;
  return {
    id: 'sparkstream-nb:siddhi',
    description: 'SiddhiQL in %%siddhi cells, .siddhi files and fences of Markdown; tables that can be sorted.',
    autoStart: true,
    requires: [IEditorLanguageRegistry, IEditorExtensionRegistry],
    optional: [INotebookTracker],
    activate: (app, languages, extensions, notebooks) => {
      languages.addLanguage({
        name: 'SiddhiQL',
        alias: ['siddhi'],
        mime: MIME,
        extensions: ['siddhi'],
        support: new LanguageSupport(StreamLanguage.define(siddhi)),
      });
      languages.addLanguage({
        name: 'SiddhiQL commands',
        mime: LINES,
        support: new LanguageSupport(StreamLanguage.define(siddhiLines)),
      });
      app.docRegistry.addFileType({
        name: 'siddhi',
        displayName: 'SiddhiQL app',
        extensions: ['.siddhi'],
        mimeTypes: [MIME],
        icon: new LabIcon({ name: 'sparkstream-nb:siddhi', svgstr: ICON }),
      });
      const lines = EditorExtensionRegistry.createImmutableExtension(
        colourLines({ view, state, language, highlight }),
      );
      extensions.addExtension({
        name: 'sparkstream-nb:lines',
        factory: ({ inline }) => (inline ? lines : null), // cells, not files
      });
      if (notebooks) followNotebooks(notebooks, languages, { text: MIME, lines: LINES });
      followTables();
    },
  };
}
