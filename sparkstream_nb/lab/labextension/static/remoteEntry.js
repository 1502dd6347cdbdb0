// The module-federation container that JupyterLab loads: `init` receives the packages that JupyterLab shares, `get`
// returns the plugins. Written by hand, so there is no build: the browser runs these files as they are.
(() => {
  const here = document.currentScript.src;
  let packages;

  // A shared package: the copy that is in use, else the newest.
  async function shared(name) {
    const versions = Object.entries(packages[name] ?? {});
    if (!versions.length) throw new Error(`sparkstream-nb: this JupyterLab does not share ${name}`);
    versions.sort(([a], [b]) => b.localeCompare(a, undefined, { numeric: true }));
    const [, used] = versions.find(([, version]) => version.loaded) ?? versions[0];
    return (await used.get())();
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB['sparkstream-nb'] = {
    init(scope) {
      packages = scope;
    },
    async get(module) {
      if (module !== './extension') throw new Error(`sparkstream-nb has no module ${module}`);
      const { makePlugins } = await import(new URL('plugin.js', here));
      const plugins = await makePlugins(shared);
      return () => ({ __esModule: true, default: plugins });
    },
  };
})();
