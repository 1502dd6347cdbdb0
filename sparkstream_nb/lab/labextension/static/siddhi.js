// A tokenizer of SiddhiQL for CodeMirror's StreamLanguage, with its indentation, comments and brackets. It follows
// `lang/grammar.lark`, but decides by a token's neighbours whether a word is a keyword: every keyword may be a name.
//
// Styles are names of CodeMirror's tags, which a theme colours. `variableName.standard` is what themes call a builtin.

import { FUNCTIONS, KEYWORDS, STREAM_FUNCTIONS, TYPES, UNITS, WINDOWS } from './words.js';

const BUILTIN = 'variableName.standard';
const DEFINED = 'variableName.definition';
const SPECIAL = 'variableName.special';

const keywords = new Set(KEYWORDS);
const types = new Set(TYPES);
const units = new Set(UNITS);
const functions = new Set([...FUNCTIONS, ...STREAM_FUNCTIONS]);
const windows = new Set(WINDOWS);

const DEFINABLE = new Set(['stream', 'table', 'window', 'trigger', 'function', 'aggregation']);
const CLOSING = { '(': ')', '[': ']' };

const NAME = /[A-Za-z_]\w*|`[^`]*`/;
const CALL = /([A-Za-z_]\w*)(?:\s*:\s*([A-Za-z_]\w*))?(?=\s*\()/;
const NUMBER = /(?:\d+(?:\.\d+|\.(?![.\w]))?|\.\d+)(?:e[-+]?\d+)?[lfd]?(?!\w)/i;
const OPERATOR = /->|\.\.\.|[=!<>]=|[-+*/%<>=?!]/;
const BEFORE_TYPE = new RegExp(`\\s+(?:${TYPES.join('|')})\\b`, 'i');

const SCRIPT_WORDS = new Set(
  'break case const continue default do else false for function if in let new null return switch this true typeof var while'.split(' '),
);

function startState() {
  return {
    start: true, // nothing but blank lines so far
    magic: false, // in the line of %%siddhi
    open: null, // what a line may end inside of: a 'comment' or a 'text' in three quotes
    script: 0, // open braces of a function's body
    brackets: [], // what is open, as { close, annotation, indent }
    after: '', // what the token before says about a word: '.', 'number', 'define', ...
    durations: false, // behind `aggregate`
  };
}

function token(stream, state) {
  if (state.start && !stream.eatSpace()) {
    state.start = false;
    state.magic = stream.match(/%%siddhi(?![\w-])/) !== null;
    if (state.magic) return 'meta';
  }
  if (state.magic && !stream.sol()) return magicToken(stream, state);
  state.magic = false;
  if (state.open) return rest(stream, state);
  if (stream.eatSpace()) return null;
  return state.script ? scriptToken(stream, state) : siddhiToken(stream, state);
}

// The rest of a comment or of a text over several lines.
function rest(stream, state) {
  const style = state.open === 'comment' ? 'comment' : 'string';
  const end = state.open === 'comment' ? '*/' : '"""';
  if (stream.skipTo(end)) {
    stream.match(end);
    state.open = null;
  } else {
    stream.skipToEnd();
  }
  return style;
}

// `%%siddhi Trades --nodes 2`
function magicToken(stream, state) {
  if (stream.eatSpace()) return null;
  const after = state.after;
  state.after = '';
  if (stream.match(/'[^']*'?|"[^"]*"?/)) return 'string';
  if (stream.match(/--?[A-Za-z][\w-]*/)) {
    state.after = 'option';
    return 'attributeName';
  }
  if (stream.match(/\d+(?!\S)/)) return 'number';
  stream.match(/[^\s'"]+/);
  return after === 'option' ? 'string' : DEFINED;
}

// The body of `define function`, which is JavaScript as a rule.
function scriptToken(stream, state) {
  if (stream.match('/*')) {
    state.open = 'comment';
    return rest(stream, state);
  }
  if (stream.match('//')) {
    stream.skipToEnd();
    return 'comment';
  }
  if (stream.match(/"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?/)) return 'string';
  if (stream.match(/\d[\w.]*/)) return 'number';
  const word = stream.match(/[A-Za-z_$][\w$]*/);
  if (word) return SCRIPT_WORDS.has(word[0]) ? 'keyword' : 'variableName';
  const c = stream.next();
  if (c === '{') state.script += 1;
  if (c === '}') state.script -= 1;
  return '{}()[]'.includes(c) ? 'bracket' : null;
}

function siddhiToken(stream, state) {
  const after = state.after;
  state.after = '';
  if (stream.match('--')) {
    stream.skipToEnd();
    state.after = after;
    return 'comment';
  }
  if (stream.match('/*')) {
    state.after = after;
    state.open = 'comment';
    return rest(stream, state);
  }
  if (stream.match('"""')) {
    state.open = 'text';
    return rest(stream, state);
  }
  if (stream.match(/'[^']*'?|"[^"]*"?/)) return 'string';
  if (stream.match(/\$\{\w+\}/)) return SPECIAL;
  if (stream.match(/@\s*[A-Za-z_]\w*(?:\s*:\s*[A-Za-z_]\w*)?/)) {
    state.after = 'annotation';
    return 'meta';
  }
  if (stream.peek() === '#') return hashToken(stream, state);
  if (stream.match(/![A-Za-z_]\w*/)) return SPECIAL; // a fault stream
  if (stream.match(NUMBER)) {
    state.after = 'number';
    return 'number';
  }
  if (state.brackets.at(-1)?.annotation && stream.match(/[A-Za-z_][\w.:-]*(?=\s*=)/)) return 'attributeName';
  const style = wordToken(stream, state, after);
  if (style) return style;
  if (stream.match(OPERATOR)) return 'operator';
  return signToken(stream, state, after);
}

// `#window.length(3)`, `#log()`, `#[filter]`, `#InnerStream`
function hashToken(stream, state) {
  if (stream.match(/#window(?=\s*\.)/i)) {
    state.after = '#window';
    return 'keyword';
  }
  stream.next();
  const call = stream.match(CALL);
  if (call) return functions.has(called(call)) ? BUILTIN : 'variableName';
  return stream.match(NAME) ? SPECIAL : 'operator';
}

const called = ([, first, second]) => (second ? `${first}:${second}` : first);

function wordToken(stream, state, after) {
  if (after === 'window.') {
    const name = stream.match(NAME);
    return name && (windows.has(name[0]) ? BUILTIN : 'variableName');
  }
  if (after === '.') return stream.match(NAME) && 'propertyName';
  if (after === 'defined' || after === 'as') return stream.match(NAME) && DEFINED;
  if (after === 'by') return stream.match(NAME) && 'variableName';
  const call = stream.match(CALL, false);
  if (call && !keywordIsCalled(call)) {
    stream.match(CALL);
    return functions.has(called(call)) || windows.has(call[1]) ? BUILTIN : 'variableName';
  }
  const name = stream.match(NAME);
  if (!name) return null;
  const word = name[0].toLowerCase();
  if (!keywords.has(word) || isAttribute(stream, word)) return 'variableName';
  if (types.has(word)) return BUILTIN;
  if (units.has(word)) {
    return after === 'number' || state.durations ? 'unit' : 'variableName';
  }
  if (word === 'true' || word === 'false') return 'bool';
  noteKeyword(stream, state, word, after);
  return 'keyword';
}

// `(order int, limit long)`, but not `return int`
const isAttribute = (stream, word) => word !== 'return' && stream.match(BEFORE_TYPE, false);

// `partition with (...)`, `not (...)` and the like; `min(...)` and `last(...)` are calls.
const keywordIsCalled = ([, name, second]) =>
  !second && keywords.has(name.toLowerCase()) && !units.has(name.toLowerCase());

function noteKeyword(stream, state, word, after) {
  if (word === 'define' || word === 'as' || word === 'by') state.after = word;
  if (after === 'define' && DEFINABLE.has(word)) state.after = 'defined';
  if (word === 'aggregate') state.durations = true;
  if (word === 'begin') state.brackets.push({ close: 'end', annotation: false, indent: stream.indentation() });
  if (word === 'end') close(state, 'end');
}

function signToken(stream, state, after) {
  const c = stream.next();
  if (c === '.') {
    state.after = after === '#window' ? 'window.' : '.';
    return 'punctuation';
  }
  if (c === ';') state.durations = false;
  if (c === '{') state.script = 1;
  if (c in CLOSING) {
    const annotation = after === 'annotation';
    state.brackets.push({ close: CLOSING[c], annotation, indent: stream.indentation() });
  }
  if (c === ')' || c === ']') close(state, c);
  return '()[]{}'.includes(c) ? 'bracket' : 'punctuation';
}

// Closes the innermost bracket of this kind, and what was left open in it.
function close(state, sign) {
  const at = state.brackets.findLastIndex((b) => b.close === sign);
  if (at >= 0) state.brackets.length = at;
}

function indent(state, textAfter, context) {
  const inner = state.brackets.at(-1);
  if (!inner || state.open || state.script) return null; // as the line before
  const closes = textAfter.trimStart().toLowerCase().startsWith(inner.close);
  return inner.indent + (closes ? 0 : context.unit);
}

/** The parser for `StreamLanguage.define`. */
export const siddhi = {
  name: 'siddhi',
  startState,
  token,
  indent,
  languageData: {
    commentTokens: { line: '--', block: { open: '/*', close: '*/' } },
    closeBrackets: { brackets: ['(', '[', '{', "'", '"'] },
    indentOnInput: /^\s*(?:end|[)\]}])$/i,
  },
};

// `%siddhi send Trades.S '["wso2", 100.0]' --node 1`: a line of a notebook, and Python's comments between such lines.
function linesToken(stream, state) {
  if (stream.sol()) {
    state.after = '';
    stream.eatSpace();
    if (stream.match(/%siddhi(?![\w-])/)) return 'meta';
    if (stream.match(/#.*/)) return 'comment';
  }
  return magicToken(stream, state);
}

/** The language of `%siddhi` lines. */
export const siddhiLines = {
  name: 'siddhi-lines',
  startState: () => ({ after: '' }),
  token: linesToken,
  languageData: { commentTokens: { line: '#' } },
};
