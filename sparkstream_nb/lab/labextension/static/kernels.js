// The kernels that have apps of this package. Each has a connection of its own, so that the notebook's is not disturbed;
// there is none while no one looks. Messages go by the one comm that the kernel has for all pages
// (`lab/panel/panel_comm.py`): a page finds it by the control channel, which answers while a cell runs.

const TARGET = 'sparkstream.panel';
const SUBSHELLS = ':subshells'; // the end of the comm's id in a kernel that handles messages while a cell runs
const RENEWAL = 30_000; // ms until a page says again that it is there; the kernel's lease is longer
const SILENCE = 5_000; // ms without a state until the kernel is asked whether it still has the comm
const PATIENCE = 10_000; // ms for an answer, before the question is asked again
const TRIES = 3; // of a kernel that never answers: it may be none of Python's
const SETTLING = 3_000; // ms within which kernels have answered, as a rule
const AGAIN = 1_000; // ms until a kernel that restarts is looked at again
const PAGE = crypto.randomUUID?.() ?? String(Math.random());

/** A kernel: `name` and `path` of what it belongs to, its last `state`, when that came (`at`, ms), and if it is `busy`. */
class KernelLink {
  constructor(model, connection, createMessage, changed) {
    Object.assign(this, { id: model.id, connection, createMessage, changed });
    this.busy = model.execution_state === 'busy';
    this.name = model.name;
    this.state = null;
    this.at = 0;
    this.tries = TRIES;
    this.views = new Map(); // by id, what takes the kernel's messages to it
    this.pending = new Map(); // by number of a request, what opens the view that was asked for
    connection.anyMessage.connect(this.take, this);
    this.find();
  }

  message(msgType, channel, content) {
    const { clientId, username } = this.connection;
    return this.createMessage({ msgType, channel, session: clientId, username, content });
  }

  // The content of the answer on the control channel, whenever it comes.
  async ask(msgType, content) {
    const message = this.message(msgType, 'control', content);
    return (await this.connection.sendControlMessage(message, true, true).done).content;
  }

  // A kernel that starts loses the question, and one that is busy with what Python cannot interrupt answers late.
  async find() {
    if (this.asking) return;
    this.tries -= 1;
    this.asking = setTimeout(() => (this.asking = undefined), PATIENCE);
    try {
      const { comms } = await this.ask('comm_info_request', { target_name: TARGET });
      this.tries = 0;
      const [id] = Object.keys(comms ?? {});
      if (id) await this.greet(id);
      else this.forget();
    } catch {
      // The connection has ended.
    }
    clearTimeout(this.asking);
    this.asking = undefined;
  }

  async greet(comm) {
    if (comm.endsWith(SUBSHELLS)) {
      this.making ??= this.ask('create_subshell_request', {});
      this.subshell = (await this.making).subshell_id;
    }
    this.comm = comm;
    this.greeted = Date.now();
    this.tell({ do: 'here' });
  }

  /** Sends a request to the kernel. */
  tell(data) {
    if (!this.comm || this.connection.isDisposed) return;
    const message = this.message('comm_msg', 'shell', { comm_id: this.comm, data: { ...data, page: PAGE } });
    if (this.subshell) message.header.subshell_id = this.subshell;
    this.connection.sendShellMessage(message, false, true);
  }

  /** Asks for a view of an app; `open` takes the answer. */
  request(data, open) {
    const request = crypto.randomUUID?.() ?? String(Math.random());
    this.pending.set(request, open);
    this.tell({ ...data, do: 'open', request });
  }

  take(_, { msg, direction }) {
    if (direction !== 'recv' || msg.channel !== 'iopub') return;
    const { msg_type: type } = msg.header;
    if (type === 'comm_msg' && msg.content.comm_id.startsWith(TARGET)) {
      this.hear(msg.content.comm_id, msg.content.data, msg.buffers);
    } else if (type === 'status' && msg.parent_header.msg_type === 'execute_request') {
      this.busy = msg.content.execution_state === 'busy';
      this.changed();
    } else if (type === 'shutdown_reply' || (type === 'status' && msg.content.execution_state === 'restarting')) {
      this.restarted();
    }
  }

  hear(comm, data, buffers) {
    if (data.type === 'hello') this.greet(comm).catch(() => {});
    else if (data.type === 'view') this.views.get(data.view)?.take(data, buffers);
    else if (data.type === 'state' && comm === this.comm) {
      this.state = data;
      this.at = Date.now();
      this.changed();
    } else if (data.page === PAGE && data.type === 'failed') {
      this.failed(this, data);
    } else if (data.page === PAGE && data.type === 'opened') {
      this.pending.get(data.request)?.(data);
      this.pending.delete(data.request);
    }
  }

  tick() {
    const now = Date.now();
    if (this.comm && now - this.greeted > RENEWAL) this.greet(this.comm);
    else if (this.comm && now - Math.max(this.at, this.greeted) > SILENCE) this.find();
    else if (!this.comm && this.tries > 0) this.find();
  }

  /** True if it is known what the kernel has. */
  get isKnown() {
    return Boolean(this.comm ? this.state : !this.asking && this.tries <= 0);
  }

  // The kernel does not have the package: nothing of it is shown.
  forget() {
    this.comm = this.making = this.subshell = undefined;
    this.state = null;
    for (const view of this.views.values()) view.end();
    this.views.clear();
    this.pending.clear();
    this.changed();
  }

  leave() {
    this.tell({ do: 'leave' });
    if (this.subshell) this.ask('delete_subshell_request', { subshell_id: this.subshell }).catch(() => {});
  }

  end() {
    this.leave();
    this.forget();
    const { connection } = this;
    setTimeout(() => connection.dispose(), AGAIN); // not before its last messages are sent
  }
}

/** The running kernels while someone looks. `changed()` is called when one of them has something new, `failed(link,
 * message)` when it could not do what was asked. */
export class Kernels {
  constructor({ kernels, sessions }, createMessage, { changed, failed }) {
    Object.assign(this, { kernels, sessions, createMessage, changed, failed });
    this.links = new Map();
    this.lookers = new Set();
    window.addEventListener('pagehide', () => this.links.forEach((link) => link.leave()));
  }

  /** `looker` looks from now on. */
  look(looker) {
    this.lookers.add(looker);
    clearTimeout(this.ending);
    if (this.timer) return;
    this.began = Date.now();
    this.timer = setInterval(() => this.tick(), 1000);
    this.kernels.runningChanged.connect(this.refresh, this);
    this.sessions.runningChanged.connect(this.refresh, this);
    this.refresh();
  }

  /** It does not any more. A change of JupyterLab's theme hides the panel for a moment. */
  leave(looker) {
    this.lookers.delete(looker);
    clearTimeout(this.ending);
    if (!this.lookers.size) this.ending = setTimeout(() => this.close(), AGAIN);
  }

  close() {
    clearInterval(this.timer);
    this.timer = undefined;
    this.kernels.runningChanged.disconnect(this.refresh, this);
    this.sessions.runningChanged.disconnect(this.refresh, this);
    this.links.forEach((link) => link.end());
    this.links.clear();
  }

  refresh() {
    if (!this.timer) return;
    const running = new Map([...this.kernels.running()].map((model) => [model.id, model]));
    for (const [id, link] of this.links) if (!running.has(id)) this.drop(link);
    for (const [id, model] of running) if (!this.links.has(id)) this.add(model);
    for (const { kernel, path, name } of this.sessions.running()) {
      const link = this.links.get(kernel?.id);
      if (link) Object.assign(link, { path, name: (path || name).split('/').pop() || link.name });
    }
    this.changed();
  }

  add(model) {
    const connection = this.kernels.connectTo({ model, handleComms: false });
    const link = new KernelLink(model, connection, this.createMessage, this.changed);
    link.failed = this.failed;
    link.restarted = () => {
      this.drop(link);
      setTimeout(() => this.refresh(), AGAIN);
    };
    this.links.set(model.id, link);
  }

  drop(link) {
    this.links.delete(link.id);
    link.forget();
    link.connection.dispose();
  }

  tick() {
    this.links.forEach((link) => link.tick());
    this.changed(); // ages
  }

  /** True if it is known what all kernels have, or some do not say. */
  get areKnown() {
    return Date.now() - this.began > SETTLING || [...this.links.values()].every((link) => link.isKnown);
  }

  /** The kernels that have the package, by name. */
  withPackage() {
    const links = [...this.links.values()].filter((link) => link.state);
    return links.sort((a, b) => a.name.localeCompare(b.name) || a.id.localeCompare(b.id));
  }
}
