// Views of an app beside the notebook: the same forms as in a notebook's output, drawn by the same scripts, which get
// their messages by the side panel's comm in place of a widget's.

const TWICE = 1_000; // ms within which a second click opens nothing

/** Opens views. `packages` are JupyterLab's; `kernels` stay connected while a view is open. */
export class Beside {
  constructor(packages, shell, rendermime, notebooks, kernels) {
    Object.assign(this, { packages, shell, rendermime, notebooks, kernels });
    this.opened = new Map(); // by kernel, app, view and stream
    this.asked = new Map(); // by the same, when it was asked for
    this.last = undefined;
  }

  /** Opens a view of an app ("card", "tail", "graph" or "log"), or goes to it where it is open. */
  open(link, app, view, stream) {
    const key = JSON.stringify([link.id, app, view, stream]);
    const former = this.opened.get(key);
    if (former && !former.model.ended) return this.shell.activateById(former.widget.id);
    if (Date.now() - (this.asked.get(key) ?? 0) < TWICE) return;
    this.asked.set(key, Date.now());
    link.request({ app, view, stream }, async (answer) => {
      const opened = await this.show(link, answer);
      former?.widget.dispose();
      this.opened.set(key, opened);
      opened.widget.disposed.connect(() => {
        if (this.opened.get(key) === opened) this.opened.delete(key);
      });
    });
  }

  async show(link, { view, title, html, script, key }) {
    const { MainAreaWidget, Widget, PanelLayout, icon } = this.packages;
    const renderer = this.rendermime.createRenderer('text/html');
    await renderer.renderModel(this.rendermime.createModel({ data: { 'text/html': html }, trusted: true }));
    const content = new Widget();
    content.layout = new PanelLayout();
    content.layout.addWidget(renderer);
    content.addClass('sparkstream-beside');
    const widget = new MainAreaWidget({ content });
    widget.id = `sparkstream-${view}`;
    Object.assign(widget.title, { label: title, caption: `${title}: ${link.name}`, icon, closable: true });
    const model = makeModel(key, (content) => link.tell({ do: 'tell', view, content }));
    link.views.set(view, model);
    this.kernels.look(view);
    const ending = new AbortController();
    widget.disposed.connect(() => {
      ending.abort();
      link.views.delete(view);
      link.tell({ do: 'close', view });
      this.kernels.leave(view);
    });
    this.add(widget, link);
    const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
    try {
      (await import(/* webpackIgnore: true */ url)).default.initialize({ model, signal: ending.signal });
    } finally {
      URL.revokeObjectURL(url);
    }
    return { widget, model };
  }

  // To the right of the kernel's notebook; a further one behind the last.
  add(widget, link) {
    const notebook = this.notebooks?.find((panel) => panel.sessionContext.session?.kernel?.id === link.id);
    const isThere = this.last?.isAttached && !this.last.isDisposed;
    if (isThere) this.shell.add(widget, 'main', { mode: 'tab-after', ref: this.last.id });
    else if (notebook) this.shell.add(widget, 'main', { mode: 'split-right', ref: notebook.id });
    else this.shell.add(widget, 'main');
    this.last = widget;
  }
}

// What the script of a live output takes for its widget model.
function makeModel(key, send) {
  const values = { key, state: {} };
  const calls = {};
  const fire = (event, ...given) => (calls[event] ?? []).forEach((call) => call(...given));
  return {
    ended: false,
    get: (name) => values[name],
    on: (event, call) => (calls[event] ??= []).push(call),
    send,
    take({ state, content }, buffers) {
      if (state) {
        values.state = state;
        fire('change:state');
      } else {
        fire('msg:custom', content, buffers ?? []);
      }
    },
    end() {
      this.ended = true;
      fire('comm_live_update');
    },
  };
}
