// The conversation as a tree, drawn as lanes beside the messages: each leaf has a lane of its own.

import { h, svg, tool } from './dom.js';
import { shorten } from './format.js';

const LANE = 16, ROW = 40, START = 14, LANES_MAX = 24;
const NAMES = { user: 'You', assistant: 'Answer', tool: 'Tool' };

// Rows in the order of reading: { message, lane, level, from, lines }.  `lines`: lanes that pass.
function layOut(conversation) {
    const rows = [], stack = [];
    const put = (ids, lane, level, parentLane) => {
        // The first child goes on in the lane; the others are drawn behind its whole subtree.
        for (let i = ids.length - 1; i >= 0; i--)
            stack.push({ id: ids[i], level, parentLane, lane: i === 0 ? lane : null });
    };
    let lanes = 0;

    const first = conversation.children(null);

    put(first, 0, 1, first.length > 1 ? 0 : null);
    while (stack.length) {
        const at = stack.pop(), message = conversation.get(at.id);
        const lane = at.lane ?? ++lanes;

        lanes = Math.max(lanes, lane);
        rows.push({ message, lane, level: at.level, from: at.parentLane });
        put(conversation.children(at.id), lane, at.level + 1, lane);
    }
    return rows;
}

// The vertical and slanted lines of each row: a child that is not the next row needs a line that
// passes all rows between.  Lines of several first messages come from above all rows.
function addLines(rows) {
    const place = new Map(rows.map((row, at) => [row.message.id, at]));

    rows.forEach((row) => { row.passes = []; row.starts = []; });
    rows.forEach((row, at) => {
        const parent = row.message.parent === null ? -1 : place.get(row.message.parent);

        if (row.from === null)
            return;
        rows[parent]?.starts.push(row.lane);
        for (let between = parent + 1; between < at; between++)
            rows[between].passes.push(row.lane);
    });
}

const x = (lane) => 10 + Math.min(lane, LANES_MAX) * LANE;

function picture(row, width, onPath) {
    const middle = ROW / 2;
    const made = svg('svg', { class: 'lanes', width, height: ROW, 'aria-hidden': 'true' });
    const line = (d) => made.append(svg('path', { d, class: 'lane' }));

    for (const lane of row.passes)
        line(`M${x(lane)} 0V${ROW}`);
    if (row.from !== null)
        line(`M${x(row.lane)} 0V${middle}`);
    for (const lane of row.starts)
        line(lane === row.lane ? `M${x(lane)} ${middle}V${ROW}`
            : `M${x(row.lane)} ${middle}C${x(lane)} ${middle} ${x(lane)} ${middle} ${x(lane)} ${ROW}`);
    made.append(svg('circle', { cx: x(row.lane), cy: middle, r: 5,
                                class: `knot ${row.message.role}${onPath ? ' on-path' : ''}` }));
    return made;
}

// Several first messages are branches, too: their lanes begin at one point above all rows.
function pictureOfStart(rows, width) {
    const lanes = rows.filter(({ level }) => level === 1).map(({ lane }) => lane);
    const line = (lane) => svg('path', {
        d: `M${x(0)} 5C${x(lane)} 5 ${x(lane)} 5 ${x(lane)} ${START}`, class: 'lane' });

    return svg('svg', { class: 'lanes', width, height: START, 'aria-hidden': 'true' }, ...lanes.map(line),
               svg('circle', { cx: x(0), cy: 5, r: 3, class: 'knot' }));
}

function onArrows(event, items) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = items.indexOf(document.activeElement);
    const next = event.key === 'Home' ? 0 : event.key === 'End' ? items.length - 1
        : step ? Math.max(0, Math.min(items.length - 1, at + step)) : -1;

    if (next < 0)
        return;
    event.preventDefault();
    items[at]?.setAttribute('tabindex', '-1');
    items[next].setAttribute('tabindex', '0');
    items[next].focus();
}

// ongo(id): the person goes to this message.
export function buildTree(conversation, ongo, onclose) {
    const rows = layOut(conversation), path = new Set(conversation.path().map(({ id }) => id));
    const width = x(Math.max(0, ...rows.map(({ lane }) => Math.min(lane, LANES_MAX)))) + 12;

    addLines(rows);
    const items = rows.map((row) => {
        const { message } = row, isLeaf = message.id === conversation.leaf;
        const words = message.text || message.calls?.map(({ name }) => `calls ${name}`).join(', ') ||
                      message.reasoning || (message.state === 'running' ? '…' : '(empty)');
        const label = `${NAMES[message.role]}: ${shorten(words, 80)}`;
        const go = () => ongo(message.id);

        return h('div', { role: 'treeitem', 'aria-label': label, 'aria-level': row.level,
                          class: path.has(message.id) ? 'tree-row on-path' : 'tree-row',
                          'aria-selected': String(isLeaf),
                          tabindex: isLeaf ? '0' : '-1', 'data-id': message.id, onclick: go,
                          onkeydown: (event) => (event.key === 'Enter' || event.key === ' ') &&
                                                (event.preventDefault(), go()) },
            picture(row, width, path.has(message.id)),
            h('span', { class: 'tree-words' }, h('b', {}, NAMES[message.role]), ' ', shorten(words, 80)));
    });

    if (items.length && !items.some((item) => item.tabIndex === 0))
        items[0].setAttribute('tabindex', '0');
    return h('div', { class: 'side-body' },
        h('header', {}, h('h2', {}, 'Tree of branches'), tool('close', 'Close tree', onclose)),
        items.length ? h('div', { role: 'tree', class: 'tree',
                                  'aria-label': 'Branches of the conversation',
                                  onkeydown: (event) => onArrows(event, items) },
                           rows[0].from !== null ? pictureOfStart(rows, width) : null, ...items)
                     : h('p', { class: 'muted' }, 'There are no messages yet.'));
}
