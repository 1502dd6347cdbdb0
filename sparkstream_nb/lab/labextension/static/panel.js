// The side panel of JupyterLab: the apps of all kernels, and their views beside the notebook.

import { createList } from './apps.js';
import { Beside } from './beside.js';
import { Kernels } from './kernels.js';

const COMMAND = 'sparkstream-nb:show-apps';

/** The plugin of the panel, which JupyterLab alone has. `shared(name)` gives a package that JupyterLab shares; `svgstr`
 * is the icon. */
export async function makePanel(shared, svgstr) {
  const [application, apputils, notebook, rendermimes, services, ui, widgets] = await Promise.all(
    [
      '@jupyterlab/application',
      '@jupyterlab/apputils',
      '@jupyterlab/notebook',
      '@jupyterlab/rendermime',
      '@jupyterlab/services',
      '@jupyterlab/ui-components',
      '@lumino/widgets',
    ].map(shared),
  );
  const { ICommandPalette, MainAreaWidget } = apputils;
  const { Widget, PanelLayout } = widgets;
  const { createMessage } = services.KernelMessage;

  function activate(app, rendermime, shell, restorer, palette, notebooks) {
    if (!shell) return; // Notebook 7
    const icon = new ui.LabIcon({ name: 'sparkstream-nb:apps', svgstr });
    const widget = new Widget();
    let list;
    // A panel that is opened again has its former list until the kernels have answered.
    const changed = () => widget.isVisible && kernels.areKnown && list.update(kernels.withPackage());
    const failed = (link, { app, text }) => list.fail(app ? `${app}: ${text}` : text);
    const kernels = new Kernels(app.serviceManager, createMessage, { changed, failed });
    const packages = { MainAreaWidget, Widget, PanelLayout, icon };
    const beside = new Beside(packages, shell, rendermime, notebooks, kernels);
    list = createList(widget.node, {
      stop: (link, name) => link.tell({ do: 'stop', app: name }),
      stopAll: async (links) => (await isSure(apputils, links)) && links.forEach((link) => link.tell({ do: 'stop all' })),
      feed: (link, feed, data) => link.tell({ ...data, do: 'feed', feed }),
      open: (link, name, view, stream) => beside.open(link, name, view, stream),
      go: (link) => link.path && app.commands.execute('docmanager:open', { path: link.path }),
    });
    widget.id = 'sparkstream-apps';
    widget.addClass('sparkstream-panel');
    widget.title.icon = icon;
    widget.title.caption = 'SiddhiQL apps';
    widget.node.setAttribute('role', 'region');
    widget.node.setAttribute('aria-label', 'SiddhiQL apps');
    widget.onAfterShow = widget.onAfterAttach = () => widget.isVisible && kernels.look(widget.id);
    widget.onAfterHide = () => kernels.leave(widget.id);
    shell.add(widget, 'left', { rank: 220, type: 'SiddhiQL apps' });
    restorer?.add(widget, widget.id);
    app.commands.addCommand(COMMAND, {
      label: 'SiddhiQL: show the running apps',
      icon,
      execute: () => shell.activateById(widget.id),
    });
    palette?.addItem({ command: COMMAND, category: 'SiddhiQL' });
  }

  return {
    id: 'sparkstream-nb:apps',
    description: 'A side panel with the SiddhiQL apps of all kernels.',
    autoStart: true,
    requires: [rendermimes.IRenderMimeRegistry],
    optional: [application.ILabShell, application.ILayoutRestorer, ICommandPalette, notebook.INotebookTracker],
    activate,
  };
}

async function isSure({ showDialog, Dialog }, links) {
  const apps = links.flatMap((link) => link.state.apps).filter((app) => app.state === 'running');
  const answer = await showDialog({
    title: apps.length === 1 ? 'Stop the app?' : `Stop all ${apps.length} apps?`,
    body: `${apps.map((app) => app.name).join(', ')}. State and outputs stay; an event or a query starts an app again.`,
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: 'Stop all' })],
  });
  return answer.button.accept;
}
