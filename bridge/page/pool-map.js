// The block pool as a map: a cell for each block, in the order of their numbers.  In a pool that is
// too large for that, a cell stands for several neighbours and has their mean colour.

import { h, setText } from './dom.js';
import { count, percent } from './format.js';

const CELL_MIN = 4, CELL_MAX = 24, HEIGHT = 180;
const SLACK = 8; // the card may grow by so much before all cells become a pixel smaller
const FREE = 0, CACHED = 1, USED = 2, PINNED = 3, FOREIGN = 4;
const STATES = [['Free', '--free'], ['Cached', '--cached'], ['In use', '--used'],
                ['Pinned', '--pinned'], ['Of other users', '--foreign']];
const SHARES = [['Used by none', '--free'], ['Used by one', '--share-1'], ['Shared by 2', '--share-2'],
                ['Shared by 3 or 4', '--share-3'], ['Shared by 5 or more', '--share-4'],
                ['Of other users', '--foreign']];
const HIDDEN_SHARE = SHARES.length - 1;
const USER_COLOURS = 8;

const sharing = (refs) => (refs < 3 ? refs : refs < 5 ? 3 : 4);

function colourOf(name) {
    const probe = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const digits = /^#([0-9a-f]{6})$/i.exec(probe)?.[1] ?? '888888';

    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

// shared: the blocks of a prefix that a user has published; uid is then the group.
export function userName({ uid, principal, shared }) {
    if (shared)
        return shared === 'group' ? `group ${uid}` : 'everyone';
    return principal || `uid ${uid}`;
}

const keyOf = ({ uid, principal, shared }) => JSON.stringify([uid, principal, shared ?? '']);

// One map of the replies of the server: each goes on where the one before ends, and has a list of
// users of its own.
export function joinPool(replies) {
    const users = new Map(), runs = [];

    for (const reply of replies) {
        const names = reply.users.map(keyOf);

        reply.users.forEach((each, at) => users.has(names[at]) ||
                                          users.set(names[at], { ...each, at: users.size }));
        for (const [length, state, refs, user] of reply.runs)
            runs.push([length, state, refs, user === undefined ? -1 : users.get(names[user])?.at ?? -1]);
    }
    return { ...replies[0], users: [...users.values()], runs };
}

// The runs as arrays, with a place for each block.
function expand({ blocks, runs }) {
    const pool = { state: new Uint8Array(blocks), refs: new Uint16Array(blocks),
                   user: new Int16Array(blocks) };
    let at = 0;

    for (const [length, state, refs, user] of runs) {
        const end = Math.min(blocks, at + length);

        pool.state.fill(state, at, end);
        pool.refs.fill(Math.min(65535, refs), at, end);
        pool.user.fill(user, at, end);
        at = end;
    }
    pool.user.fill(-1, at);
    return pool;
}

export class PoolMap {
    constructor() {
        this.block = null; // that is described
        this.canvas = h('canvas', { class: 'map', role: 'img', tabindex: '0',
                                    'aria-label': 'Map of the block pool',
                                    onpointermove: (event) => this.onPoint(event),
                                    onpointerleave: () => this.forget(),
                                    onkeydown: (event) => this.onKey(event) });
        this.hint = 'Point at a block, or use the arrow keys.';
        this.detail = h('p', { class: 'muted map-detail', 'aria-live': 'polite' }, this.hint);
        this.mode = h('select', { id: 'map-mode', onchange: () => this.pool && this.draw() },
                      ['State', 'Sharing', 'User'].map((name) => h('option', {}, name)));
        this.legend = h('ul', { class: 'legend', 'aria-label': 'Totals of the pool' });
        this.place = h('div', { class: 'map-place' }, this.canvas);
        this.element = h('div', { class: 'pool' },
            h('div', { class: 'map-head' }, h('label', { for: 'map-mode' }, 'Colour by'), this.mode, this.detail),
            this.place, this.legend);
        new ResizeObserver(() => this.pool && this.draw()).observe(this.element);
    }

    update(data) {
        this.data = data;
        this.pool = expand(data);
        this.draw();
        if (this.block !== null)
            this.describe(this.block);
    }

    // { of(block): number of the kind, kinds: [[name, colour]] }
    kinds() {
        const { state, refs, user } = this.pool;

        if (this.mode.value === 'Sharing')
            return { kinds: SHARES, of: (block) => (state[block] === FOREIGN ? HIDDEN_SHARE
                                                                             : sharing(refs[block])) };
        if (this.mode.value === 'User') {
            const users = this.data.users.map((each, at) => [userName(each), `--user-${at % USER_COLOURS}`]);

            return { kinds: [['Free', '--free'], ['Of none of them', '--foreign'], ...users],
                     of: (block) => (user[block] >= 0 ? user[block] + 2 : state[block] === FREE ? 0 : 1) };
        }
        return { kinds: STATES, of: (block) => Math.min(state[block], FOREIGN) };
    }

    // How large is a cell, and how many blocks has it?  The map may be as high as the cards beside it
    // allow, which is known while it has no height itself.
    measure() {
        this.canvas.height = 0;
        const { blocks } = this.data, width = Math.max(200, this.element.clientWidth);
        const most = Math.max(HEIGHT, this.place.clientHeight) + SLACK;
        let cell = CELL_MAX, group = 1;
        const rows = () => Math.ceil(Math.ceil(blocks / group) / Math.floor(width / cell));

        while (cell > CELL_MIN && rows() * cell > most)
            cell--;
        while (rows() * cell > most)
            group++;
        Object.assign(this, { cell, group, columns: Math.floor(width / cell) });
        return { width, height: rows() * cell };
    }

    draw() {
        const { width, height } = this.measure(), ratio = Math.min(2, devicePixelRatio || 1);
        const { kinds, of } = this.kinds(), colours = kinds.map(([, name]) => colourOf(name));
        const totals = new Array(kinds.length).fill(0), context = this.canvas.getContext('2d');
        const gap = this.group > 1 ? 0 : 1;

        this.canvas.width = width * ratio;
        this.canvas.height = Math.max(1, height * ratio);
        context.scale(ratio, ratio);
        for (let cell = 0; cell * this.group < this.data.blocks; cell++) {
            const end = Math.min(this.data.blocks, (cell + 1) * this.group), sum = [0, 0, 0];

            for (let block = cell * this.group; block < end; block++) {
                const kind = of(block);

                totals[kind]++;
                for (let part = 0; part < 3; part++)
                    sum[part] += colours[kind][part];
            }
            const [red, green, blue] = sum.map((part) => Math.round(part / (end - cell * this.group)));

            context.fillStyle = `rgb(${red} ${green} ${blue})`;
            context.fillRect(cell % this.columns * this.cell, Math.floor(cell / this.columns) * this.cell,
                             this.cell - gap, this.cell - gap);
        }
        this.tell(kinds, totals);
    }

    tell(kinds, totals) {
        const { blocks, positions } = this.data;
        const rows = kinds.map(([name, colour], at) => ({ name, colour, total: totals[at] }))
            .filter(({ total, name }) => total || ['Cached', 'In use'].includes(name) ||
                                         (name === 'Free' && this.data.all_users !== false));

        while (this.legend.children.length > rows.length)
            this.legend.lastChild.remove();
        rows.forEach(({ name, colour, total }, at) => {
            if (!this.legend.children[at])
                this.legend.append(h('li', {}, h('span', { 'aria-hidden': 'true' }), h('span')));
            const [swatch, words] = this.legend.children[at].children;

            swatch.setAttribute('class', `swatch s${colour.replace('--', '-')}`);
            setText(words, `${name}: ${total.toLocaleString('en')} (${percent(blocks ? total / blocks : 0)})`);
        });
        this.canvas.setAttribute('aria-label', `Map of the block pool: ${count(blocks, 'block')} of ` +
            `${positions} positions. ` + rows.map(({ name, total }) => `${name} ${total}`).join(', '));
    }

    onPoint({ offsetX, offsetY }) {
        const scale = this.canvas.width / this.canvas.clientWidth / Math.min(2, devicePixelRatio || 1);
        const column = Math.floor(offsetX * scale / this.cell);
        const row = Math.floor(offsetY * scale / this.cell);

        if (this.pool && column < this.columns)
            this.describe((row * this.columns + column) * this.group);
    }

    onKey(event) {
        const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns };

        if (!this.pool || !steps[event.key])
            return;
        event.preventDefault();
        this.describe(Math.max(0, Math.min(this.data.blocks - 1,
                                           (this.block ?? 0) + steps[event.key] * this.group)));
    }

    forget() {
        this.block = null;
        setText(this.detail, this.hint);
    }

    describe(block) {
        if (block >= this.data.blocks)
            return;
        const { state, refs, user } = this.pool, owner = this.data.users[user[block]];

        this.block = block;
        const [name] = STATES[Math.min(state[block], FOREIGN)];

        setText(this.detail, `Block ${block.toLocaleString('en')}: ${name.toLowerCase()}` +
            (refs[block] ? `, used by ${count(refs[block], 'sequence')}` : '') +
            (owner ? `, ${owner.shared ? 'shared with' : 'of'} ${userName(owner)}` : '') +
            (owner?.own ? ' (you)' : ''));
    }
}
