// The interactive form of an output whose static form is HTML: see live.py. What follows this text defines
// create(root, send, width, file), which fills `root` and returns a function that draws a state. file(name) is a promise
// of the bytes of a file of the kernel's.

const PATIENCE = 3000; // ms until a kernel that has not said that it got a message counts as silent
const SILENT = "The kernel did not answer: reload the page, unless a cell is running.";
const NOTICE = "margin:4px 0 8px;padding:4px 10px;font:13px system-ui,sans-serif;color:var(--jp-ui-font-color1,#444);" +
  "border-left:5px solid var(--jp-warn-color1,#f57c00)";
const SELECTION = "margin:4px 0 8px;padding:2px 10px;font:13px system-ui,sans-serif;color:var(--jp-ui-font-color1,#444);" +
  "border-left:5px solid var(--jp-brand-color1,#1976d2);display:none;gap:10px;align-items:center";
const GONE = "The kernel has ended or was restarted, and the app of this view with it: run the cells again.";

// JupyterLab would take these for its own: it would edit the cell, or go to another one.
const OWN_KEYS = /^(Enter| )$/, TYPED = /^(input|select)$/i;

const make = (tag, className, parent, more = {}) => {
  const element = Object.assign(document.createElement(tag), { className }, more);
  parent.append(element);
  return element;
};
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
// Hides a button; where it has the focus, `next` gets that.
const hide = (button, hidden, next) => {
  if (hidden && document.activeElement === button) next.focus({ preventScroll: true });
  button.hidden = hidden;
};
const owners = (window.sparkstreamOutputs ??= new Map()); // by key, what ends the model that draws the output

export default {
  initialize({ model, signal }) {
    const key = model.get("key");
    const hosts = document.getElementsByClassName("sparkstream-live-" + key);
    const views = []; // {host, root, draw}
    let alive = false; // whether the kernel has answered
    let present = false; // whether the kernel knows that the output is in the page
    let resizing;

    const send = (message) => model.send(message);
    let notice = ""; // of the page itself: that the kernel is silent, or gone
    let unanswered;
    const ask = (message) => {
      unanswered ??= setTimeout(() => say(SILENT), PATIENCE);
      send(message);
    };
    const awaited = new Map(); // by name, the functions that take a file of the kernel's
    const file = (name) => new Promise((take) => {
      awaited.set(name, [...(awaited.get(name) ?? []), take]);
      send({ do: "file", name });
    });
    function heard() {
      clearTimeout(unanswered);
      unanswered = undefined;
      if (notice) say("");
    }
    function say(text) {
      notice = text;
      for (const view of views) {
        const selection = model.get("state").selection ?? "";
        put(view.selection.firstChild, selection && `selected: ${selection}`);
        view.selection.hidden = !selection;
        view.selection.style.display = selection ? "flex" : "none"; // a display of its own would show what is hidden
        const text = notice || model.get("state").standing || "";
        put(view.notice, text);
        view.notice.hidden = !text;
        if (notice) for (const element of view.root.querySelectorAll(".waiting")) element.classList.remove("waiting");
      }
    }
    const width = (host) => Math.floor(host.clientWidth);
    const sizes = new ResizeObserver(() => {
      clearTimeout(resizing);
      resizing = setTimeout(() => greet(), 200);
    });
    let greeted = 0;

    function greet() {
      const host = [...hosts].find(width);
      if (host && (!present || width(host) !== greeted)) {
        present = true;
        greeted = width(host);
        send({ do: "here", width: greeted });
      }
    }

    function draw() {
      const state = model.get("state");
      if (!state.serial) return;
      for (const view of views) if (view.host.isConnected) view.draw(state);
      say(notice);
      send({ do: "seen", serial: state.serial });
    }

    function add(host) {
      // The notebook draws an output anew where its static form was replaced: the interactive one moves over.
      const moved = views.find((view) => !view.host.isConnected && view.host !== host);
      if (moved) {
        const focus = moved.focus;
        sizes.unobserve(moved.host);
        moved.host = host;
        host.replaceChildren(moved.root);
        sizes.observe(host);
        if (focus) focus.focus({ preventScroll: true });
        return;
      }
      const root = document.createElement("div");
      root.className = "sparkstream-live-root";
      const view = { host, root, draw: create(root, ask, () => width(view.host), file), notice: document.createElement("div") };
      view.notice.className = "sparkstream-notice";
      view.notice.setAttribute("role", "status");
      view.notice.style = NOTICE;
      view.selection = make("div", "sparkstream-selection", root, { style: SELECTION, hidden: true });
      view.selection.setAttribute("role", "status");
      make("span", "", view.selection);
      const clear = make("button", "clear", view.selection, { type: "button", textContent: "Clear", title: "select everything, in all pictures of this app" });
      clear.onclick = () => ask({ do: "unselect" });
      root.prepend(view.notice, view.selection);
      root.addEventListener("focusin", (e) => (view.focus = e.target));
      root.addEventListener("keydown", (e) => { if (OWN_KEYS.test(e.key) || TYPED.test(e.target.tagName)) e.stopPropagation(); });
      // An element that is taken out loses the focus while it is still in the page; then it gets it back in its new host.
      root.addEventListener("focusout", () => queueMicrotask(() => {
        if (root.isConnected && !root.contains(document.activeElement)) view.focus = null;
      }));
      views.push(view);
      view.draw(model.get("state"));
      say(notice);
      host.replaceChildren(root);
      sizes.observe(host);
    }

    function look() {
      if (hosts.length) {
        if (!alive) {
          for (const host of hosts) sizes.observe(host);
          greet();
          return;
        }
        for (const host of hosts) if (!views.some((view) => view.host === host && host.contains(view.root))) add(host);
        if (!present) greet();
      } else if (present) {
        present = false;
        send({ do: "gone" });
      }
    }

    // A kernel that restarts or is lost; where it comes back, its next state ends this.
    model.on("comm_live_update", () => {
      heard();
      say(GONE);
      for (const view of views) view.root.classList.add("sparkstream-ended");
    });
    model.on("msg:custom", (message, buffers) => {
      heard();
      if (!message?.file) return;
      for (const take of awaited.get(message.file) ?? []) take(buffers[0]);
      awaited.delete(message.file);
    });
    model.on("change:state", () => {
      heard();
      alive = true;
      for (const view of views) view.root.classList.remove("sparkstream-ended");
      look();
      draw();
    });
    // The notebook may take an output out and put it back at once.
    let looking;
    const page = new MutationObserver(() => {
      if (hosts.length && alive) look();
      else if (!looking) looking = setTimeout(() => { looking = 0; look(); }, 50);
    });
    page.observe(document.body, { childList: true, subtree: true });
    const leave = () => send({ do: "gone" });
    window.addEventListener("pagehide", leave);

    function end() {
      page.disconnect();
      sizes.disconnect();
      clearTimeout(resizing);
      clearTimeout(looking);
      clearTimeout(unanswered);
      window.removeEventListener("pagehide", leave);
      for (const view of views) view.root.classList.add("sparkstream-ended");
      if (owners.get(key) === end) owners.delete(key);
    }
    // A notebook that was closed and is opened again has a new model of the same output, and the old one may live on:
    // two of them would replace each other's drawing for ever.
    owners.get(key)?.();
    owners.set(key, end);
    look();
    signal.addEventListener("abort", end);
  },
  render() {},
};
