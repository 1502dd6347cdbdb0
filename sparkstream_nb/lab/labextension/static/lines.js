// Colours `%siddhi` lines between lines of Python as those that are alone in a cell. Python's tokens lie around them.

import { siddhi, siddhiLines } from './siddhi.js';

const LINE = /^\s*%siddhi(?![\w-])/;
const PLAIN = { style: 'font-weight: normal; font-style: normal' }; // Python's operators are bold
const OWN = [siddhi.name, siddhiLines.name];

/** An extension of CodeMirror, which is given as its packages: `view`, `state`, `language`, `highlight`. */
export function colourLines({ view, state, language, highlight }) {
  const { tags } = highlight;
  const tagOf = {
    meta: tags.meta,
    attributeName: tags.attributeName,
    string: tags.string,
    number: tags.number,
    'variableName.definition': tags.definition(tags.variableName),
  };

  // A line within a text of three quotes is none of IPython's.
  const isText = (editor, at) => /String/.test(language.syntaxTree(editor.state).resolveInner(at, 1).name);

  function decorate(editor) {
    const marks = new state.RangeSetBuilder();
    if (OWN.includes(editor.state.facet(language.language)?.name)) return marks.finish();
    for (const { from, to } of editor.visibleRanges) {
      for (let at = from; at <= to; ) {
        const line = editor.state.doc.lineAt(at);
        if (LINE.test(line.text) && !isText(editor, line.from)) decorateLine(editor, line, marks);
        at = line.to + 1;
      }
    }
    return marks.finish();
  }

  function decorateLine(editor, line, marks) {
    const stream = new language.StringStream(line.text, editor.state.tabSize, 2);
    const after = siddhiLines.startState();
    while (!stream.eol()) {
      stream.start = stream.pos;
      const tag = tagOf[siddhiLines.token(stream, after)];
      const style = tag && language.highlightingFor(editor.state, [tag]);
      if (!style) continue;
      const mark = view.Decoration.mark({ class: style, attributes: PLAIN });
      marks.add(line.from + stream.start, line.from + stream.pos, mark);
    }
  }

  const plugin = view.ViewPlugin.fromClass(
    class {
      constructor(editor) {
        this.decorations = decorate(editor);
      }

      update(change) {
        const parsed = language.syntaxTree(change.startState) !== language.syntaxTree(change.state);
        if (change.docChanged || change.viewportChanged || parsed) this.decorations = decorate(change.view);
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );
  return state.Prec.highest(plugin); // of two marks in one place the inner one has the colour
}
