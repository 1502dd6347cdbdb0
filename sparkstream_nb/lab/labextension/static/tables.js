// Tables of results can be sorted by a click on a column's name, and long ones filtered by a text.

const TABLE = 'table.sparkstream-table';
const FILTERED = 8; // rows from which on a table has a field for a text
const ARROWS = { ascending: ' ▲', descending: ' ▼' };
const NEXT = { none: 'ascending', ascending: 'descending', descending: 'none' };

const rowsOf = (table) => [...table.tBodies[0].rows];
const numberOf = (cell) => Number(cell.textContent.replaceAll(',', ''));

function compare(column, isNumber) {
  return (a, b) => {
    const [x, y] = [a.cells[column], b.cells[column]];
    if (isNumber) {
      const [m, n] = [numberOf(x), numberOf(y)];
      if (!Number.isNaN(m) && !Number.isNaN(n)) return m - n;
      return Number.isNaN(m) - Number.isNaN(n); // what is no number comes last
    }
    return x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
  };
}

function sort(table, head, rows) {
  const order = NEXT[head.getAttribute('aria-sort') ?? 'none'];
  for (const other of head.parentNode.cells) {
    other.setAttribute('aria-sort', other === head ? order : 'none');
    other.querySelector('.arrow').textContent = other === head ? (ARROWS[order] ?? '') : '';
  }
  const sorted = [...rows]; // as they came
  if (order !== 'none') sorted.sort(compare(head.cellIndex, head.style.textAlign === 'right'));
  if (order === 'descending') sorted.reverse();
  table.tBodies[0].append(...sorted);
}

function addFilter(table, rows) {
  const field = document.createElement('input');
  field.type = 'search';
  field.placeholder = 'filter rows';
  field.setAttribute('aria-label', 'show the rows that contain a text');
  field.style.cssText =
    'font:inherit;color:inherit;background:var(--jp-layout-color1,#fff);border:1px solid var(--jp-border-color1,#bbb);' +
    'border-radius:3px;padding:1px 6px;margin:.3em 0;width:14em';
  // In an editor's or a notebook's command mode keys mean something else.
  field.addEventListener('keydown', (event) => event.stopPropagation());
  field.addEventListener('input', () => {
    const text = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(text);
  });
  table.before(field);
}

function enhance(table) {
  if (table.dataset.sorts || !table.tHead || !table.tBodies.length) return;
  table.dataset.sorts = 'yes';
  const rows = rowsOf(table);
  if (rows.length < 2) return;
  for (const head of table.tHead.rows[0].cells) {
    head.append(Object.assign(document.createElement('span'), { className: 'arrow' }));
    head.tabIndex = 0;
    head.style.cursor = 'pointer';
    head.title = 'sort by this column';
    head.addEventListener('click', () => sort(table, head, rows));
    head.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      event.stopPropagation();
      sort(table, head, rows);
    });
  }
  if (rows.length >= FILTERED) addFilter(table, rows);
}

/** Makes the tables of outputs sortable, as they appear. Views that are drawn anew with each commit stay as they are. */
export function followTables() {
  const look = (node) => {
    const found = node.matches(TABLE) ? [node] : node.querySelectorAll(TABLE);
    for (const table of found) if (!table.closest('.sparkstream-live-root')) enhance(table);
  };
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes) if (node.nodeType === 1) look(node);
  }).observe(document.body, { childList: true, subtree: true });
  look(document.body);
}
