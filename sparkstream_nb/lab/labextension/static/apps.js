// What the side panel shows: kernels, their apps with feeds, nodes and parts, and variables. Everything that comes from
// a kernel is put in as text. Elements are changed in their places, so that a click or the focus is not lost.

const OLD = 3_000; // ms: a state that is older has its age
const DETAILS = ['parts', 'nodes'];

const make = (tag, className, parent, more = {}) => {
  const element = Object.assign(document.createElement(tag), { className, ...more });
  parent?.append(element);
  return element;
};
const put = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};
const count = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;

// Gives `parent` an element for each item, in this order: the one of the same key, or a new one.
function arrange(parent, items, keyOf, create) {
  const former = new Map([...parent.children].map((element) => [element.key, element]));
  items.forEach((item, i) => {
    const key = keyOf(item);
    const element = former.get(key) ?? Object.assign(create(item), { key });
    former.delete(key);
    if (parent.children[i] !== element) parent.insertBefore(element, parent.children[i] ?? null);
    element.update?.(item);
  });
  for (const element of former.values()) element.remove();
}

function button(text, label, parent, onclick) {
  const element = make('button', '', parent, { type: 'button', textContent: text, title: label, onclick });
  element.setAttribute('aria-label', label);
  return element;
}

function folded(className, parent) {
  const details = make('details', className, parent);
  const summary = make('summary', '', details);
  return { details, summary };
}

/** The list in `root`. `act` has what its buttons do: `stop(link, app)`, `stopAll(links)`, `feed(link, feed, data)`,
 * `open(link, app, view, stream)` and `go(link)`. */
export function createList(root, act) {
  make('style', '', root, { textContent: STYLE });
  const head = make('div', 'head', root);
  make('b', 'grow', head, { textContent: 'SiddhiQL apps' });
  const stopAll = button('Stop all', 'Stop all apps of all kernels', head, () => act.stopAll(shown));
  const total = make('div', 'muted', root);
  total.setAttribute('role', 'status');
  const failed = make('div', 'failed', root);
  failed.setAttribute('role', 'alert');
  const empty = make('p', 'muted', root, {
    textContent: 'No app is deployed in a running kernel. A cell that begins with %%siddhi NAME deploys one.',
  });
  const kernels = make('div', 'kernels', root);
  let shown = [];
  let clearing;
  return {
    update(links) {
      shown = links.filter((link) => link.state.apps.length);
      const apps = shown.flatMap((link) => link.state.apps);
      const running = apps.filter((app) => app.state === 'running').length;
      put(total, apps.length ? `${running} of ${count(apps.length, 'app')} running` : '');
      stopAll.hidden = !running;
      empty.hidden = shown.length > 0;
      arrange(kernels, shown, (link) => link.id, (link) => createKernel(link, act));
    },
    fail(text) {
      put(failed, text);
      clearTimeout(clearing);
      clearing = setTimeout(() => put(failed, ''), 15_000);
    },
  };
}

function createKernel(first, act) {
  const section = make('section', 'kernel');
  const head = make('div', 'kernel-head', section);
  let link = first;
  const name = button('', '', head, () => act.go(link));
  name.className = 'name';
  const about = make('span', 'muted', head);
  const apps = make('div', 'apps', section);
  const { details, summary } = folded('variables', section);
  const variables = make('div', 'rows', details);
  section.update = (next) => {
    link = next; // a kernel that restarted has another link
    put(name, link.name);
    name.title = link.path ? `Go to ${link.path}` : link.name;
    name.setAttribute('aria-label', name.title);
    const age = Date.now() - link.at;
    const old = `${link.busy ? 'busy' : 'does not answer'}, as of ${Math.round(age / 1000)} s ago`;
    put(about, age > OLD ? old : link.busy ? 'busy' : '');
    section.classList.toggle('old', age > OLD);
    arrange(apps, link.state.apps, (app) => app.name, () => createApp(() => link, act));
    const bound = link.state.variables;
    details.hidden = !bound.length;
    put(summary, count(bound.length, 'variable'));
    arrange(variables, bound, (v) => v.name, () => createRow(['name', 'kind', 'about']));
  };
  return section;
}

function createApp(link, act) {
  let app;
  const section = make('article', 'app');
  const head = make('div', 'app-head', section);
  const dot = make('span', 'dot', head, { textContent: '●', ariaHidden: 'true' });
  const name = make('b', 'grow', head);
  const state = make('span', 'state', head);
  const stop = button('Stop', '', head, () => act.stop(link(), app.name));
  const line = make('div', 'muted line', section);
  const problems = make('div', 'problems', section);
  const views = make('div', 'views', section);
  for (const view of ['Card', 'Tail', 'Graph', 'Log']) {
    const open = () => act.open(link(), app.name, view.toLowerCase(), view === 'Tail' ? app.tail : null);
    const element = button(view, '', views, open);
    element.view = view;
  }
  const feeds = make('div', 'feeds', section);
  const [parts, nodes] = DETAILS.map((kind) => folded(kind, section));
  const partRows = make('div', 'rows', parts.details);
  const rest = make('div', 'muted', parts.details);
  const figures = make('div', 'figures', nodes.details);
  const table = make('table', '', make('div', 'scroll', nodes.details));
  const columns = make('tr', '', make('thead', '', table));
  const body = make('tbody', '', table);
  section.update = (next) => {
    app = next;
    section.dataset.state = app.state;
    dot.className = `dot ${app.state}`;
    put(name, app.name);
    put(state, app.state);
    stop.hidden = app.state !== 'running';
    stop.title = `Stop ${app.name}; an event or a query starts it again`;
    stop.setAttribute('aria-label', stop.title);
    const { events } = Object.fromEntries(app.figures);
    put(line, [app.rate, `${events} events`, `${app.errors.toLocaleString('en')} errors`, app.mode].join(' · '));
    line.classList.toggle('has-errors', app.errors > 0);
    arrange(problems, app.problems, (p) => p, () => createText('problem'));
    for (const element of views.children) {
      const what = element.view === 'Tail' ? `tail of ${app.tail}` : element.view.toLowerCase();
      element.title = `Open the ${what} of ${app.name} beside the notebook`;
      element.setAttribute('aria-label', element.title);
      element.disabled = element.view === 'Tail' && !app.tail;
    }
    arrange(feeds, app.feeds, (feed) => feed.id, () => createFeed((id, data) => act.feed(link(), id, data)));
    put(parts.summary, count(app.parts.length + app.left_out, 'part'));
    const open = (stream) => act.open(link(), app.name, 'tail', stream);
    arrange(partRows, app.parts, (p) => `${p.kind} ${p.name}`, () => createRow(['kind', 'name', 'about'], open));
    put(rest, app.left_out ? `and ${app.left_out} more` : '');
    put(nodes.summary, 'figures and nodes');
    arrange(figures, app.figures, ([label]) => label, createFigure);
    table.hidden = !app.nodes.length;
    arrange(columns, app.node_columns, (c) => c, () => createText('', 'th'));
    arrange(body, app.nodes, (cells) => cells[0], createCells);
  };
  return section;
}

function createText(className, tag = 'div') {
  const element = make(tag, className);
  element.update = (text) => put(element, text);
  return element;
}

function createFigure() {
  const figure = make('div', 'figure');
  const label = make('div', 'muted', figure);
  const value = make('div', '', figure);
  figure.update = ([name, text]) => {
    put(label, name);
    put(value, text);
  };
  return figure;
}

function createCells() {
  const row = make('tr');
  row.update = (cells) => {
    while (row.children.length < cells.length) make('td', '', row);
    cells.forEach((text, i) => put(row.children[i], text));
  };
  return row;
}

// A row of texts, by the names of what they are. With `open`, the name of a stream opens its tail.
function createRow(names, open) {
  let item;
  const row = make('div', 'row');
  const cells = names.map((name) => {
    if (name !== 'name' || !open) return make('span', name, row);
    const element = button('', '', row, () => item.has_tail && open(item.name));
    element.className = 'name';
    return element;
  });
  row.update = (next) => {
    item = next;
    names.forEach((name, i) => put(cells[i], item[name]));
    const element = cells[names.indexOf('name')];
    element.title = open && item.has_tail ? `Open the tail of ${item.name} beside the notebook` : item.name;
    if (open) element.disabled = !item.has_tail;
    if (open) element.setAttribute('aria-label', element.title);
  };
  return row;
}

function createFeed(send) {
  let feed;
  const view = make('div', 'feed');
  const head = make('div', 'feed-head', view);
  const name = make('span', 'grow', head);
  const bar = make('progress', '', view, { max: 1 });
  const words = make('div', 'muted', view);
  const controls = make('div', 'controls', view);
  const play = button('', '', controls, () => send(feed.id, { action: feed.state === 'paused' ? 'resume' : 'pause' }));
  const pace = make('select', '', controls);
  pace.onchange = () => send(feed.id, { action: 'pace', kind: feed.pace.kind, value: Number(pace.value) });
  const stop = button('Stop', '', controls, () => send(feed.id, { action: 'stop' }));
  let offered = '';
  view.update = (next) => {
    feed = next;
    put(name, `feed ${feed.id} of ${feed.stream}: ${feed.state}`);
    put(words, feed.words);
    view.dataset.state = feed.state;
    bar.hidden = controls.hidden = !feed.active;
    if (feed.fraction === null) bar.removeAttribute('value');
    else bar.value = feed.fraction;
    bar.setAttribute('aria-label', `progress of feed ${feed.id}`);
    const action = feed.state === 'paused' ? 'Resume' : 'Pause';
    put(play, action);
    play.title = `${action} feed ${feed.id}`;
    play.setAttribute('aria-label', play.title);
    stop.title = `Stop feed ${feed.id}`;
    stop.setAttribute('aria-label', stop.title);
    pace.setAttribute('aria-label', feed.pace.kind === 'speed' ? 'speed of event time' : 'events a second');
    const choices = JSON.stringify(feed.pace.choices);
    if (choices !== offered) {
      offered = choices;
      pace.replaceChildren(...feed.pace.choices.map((c) => make('option', '', null, { value: c.value, textContent: c.label })));
    }
    if (document.activeElement !== pace) pace.value = String(feed.pace.value);
  };
  return view;
}

const STYLE = `
.sparkstream-panel { overflow-y: auto; color: var(--jp-ui-font-color1); background: var(--jp-layout-color1);
  font: var(--jp-ui-font-size1) var(--jp-ui-font-family); font-variant-numeric: tabular-nums; padding: 8px;
  box-sizing: border-box; min-width: 220px !important; }
.sparkstream-panel [hidden] { display: none !important; }
.sparkstream-panel :is(.head, .kernel-head, .app-head, .feed-head, .views, .controls) {
  display: flex; flex-wrap: wrap; gap: 6px; align-items: baseline; }
.sparkstream-panel .grow { flex: 1; overflow-wrap: anywhere; }
.sparkstream-panel .muted { color: var(--jp-ui-font-color2); overflow-wrap: anywhere; }
.sparkstream-panel .kernel { margin-top: 10px; border-top: 1px solid var(--jp-border-color2); padding-top: 6px; }
.sparkstream-panel .old .apps { opacity: .6; }
.sparkstream-panel .app { border: 1px solid var(--jp-border-color2); border-radius: 4px; padding: 6px 8px; margin: 6px 0; }
.sparkstream-panel :is(button, select) { font: inherit; color: inherit; background: var(--jp-layout-color2);
  border: 1px solid var(--jp-border-color1); border-radius: 3px; min-height: 24px; padding: 0 7px; max-width: 100%; }
.sparkstream-panel button:not(:disabled) { cursor: pointer; }
.sparkstream-panel :is(button, select):hover:not(:disabled) { border-color: currentColor; }
.sparkstream-panel :is(button, select, summary):focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
.sparkstream-panel button.name { border: 0; background: none; padding: 0; text-align: left; overflow-wrap: anywhere; min-height: 0; }
.sparkstream-panel button.name:hover:not(:disabled) { text-decoration: underline; }
.sparkstream-panel .kernel-head button.name { font-weight: 600; }
.sparkstream-panel .dot { color: var(--jp-ui-font-color3); }
.sparkstream-panel .dot.running { color: #009e73; }
.sparkstream-panel .dot.failed { color: #d55e00; }
.sparkstream-panel :is(.failed, .problem):not(:empty) { color: var(--jp-error-color1); overflow-wrap: anywhere; margin: 4px 0; }
.sparkstream-panel .controls { flex-wrap: nowrap; margin-top: 4px; }
.sparkstream-panel .controls select { flex: 1; min-width: 0; }
.sparkstream-panel .line { margin: 3px 0 5px; }
.sparkstream-panel .feed { border-left: 3px solid var(--jp-brand-color1); padding-left: 8px; margin: 8px 0; }
.sparkstream-panel progress { width: 100%; accent-color: var(--jp-brand-color1); }
.sparkstream-panel details { margin-top: 6px; }
.sparkstream-panel summary { cursor: pointer; }
.sparkstream-panel .row { display: flex; flex-wrap: wrap; gap: 0 8px; padding: 2px 0 2px 12px; align-items: baseline; }
.sparkstream-panel .row .kind { color: var(--jp-ui-font-color2); }
.sparkstream-panel .row .name { font-weight: 600; overflow-wrap: anywhere; }
.sparkstream-panel .figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(90px, 1fr)); gap: 6px; padding: 4px 0 4px 12px; }
.sparkstream-panel .scroll { overflow-x: auto; padding-left: 12px; }
.sparkstream-panel :is(th, td) { text-align: left; padding: 1px 8px 1px 0; white-space: nowrap; }
.sparkstream-beside { overflow: auto; padding: 8px 12px; box-sizing: border-box; background: var(--jp-layout-color0);
  font-size: var(--jp-content-font-size1); }
`;
