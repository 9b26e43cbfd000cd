// The tab "Live": what the daemon does now.  It asks once a second, and only while it is seen.

import { $, ask, h, setText, show, toast } from './dom.js';
import { getJson, request } from './api.js';
import { Curves } from './curves.js';
import { bytes, count, duration, large, percent, rate, when } from './format.js';
import { Percentiles } from './latency.js';
import { PoolMap, joinPool, userName } from './pool-map.js';

const EVERY_MS = 1000, SPAN_MS = 5 * 60000;

let parts = null, timer = null, shown = false, turn = 0;
const missing = new Set();
const percentiles = new Percentiles();

// ---- tables whose rows stay, so that the focus does ----

class Table {
    constructor(label, columns, none) {
        this.rows = new Map();
        this.body = h('tbody');
        this.none = h('p', { class: 'muted' }, none);
        this.table = h('table', {}, h('caption', { class: 'off-screen' }, label),
            h('thead', {}, h('tr', {}, columns.map((name) => h('th', { scope: 'col' },
                name || h('span', { class: 'off-screen' }, 'Action'))))), this.body);
        this.element = h('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': label },
                         this.table, this.none);
    }

    // rows: [{ key, cells: [text or number of a share], last: makes the last cell once }]
    update(rows) {
        const keys = new Set(rows.map(({ key }) => key));

        for (const [key, row] of this.rows)
            if (!keys.has(key)) {
                row.remove();
                this.rows.delete(key);
            }
        for (const { key, cells, last } of rows) {
            let row = this.rows.get(key);

            if (!row) {
                row = h('tr', {}, cells.map(() => h('td')), last ? h('td', {}, last()) : null);
                this.rows.set(key, row);
                this.body.append(row);
            }
            cells.forEach((cell, at) => setText(row.children[at], String(cell)));
        }
        show(this.table, rows.length > 0);
        show(this.none, !rows.length);
    }
}

// ---- the parts ----

const COLUMNS = {
    streams: ['Number', 'User', 'Class', 'State', 'Prompt', 'Tokens', 'Age', ''],
    handles: ['Number', 'User', 'Tokens', 'Age', 'Busy', ''],
    users: ['User', 'Running', 'Waiting', 'Blocks', 'Share of the pool', 'Cached', 'Tokens'],
};

function card(title, ...children) {
    const note = h('p', { class: 'muted', hidden: true });

    return { note, element: h('section', { class: 'live-card', 'aria-label': title },
                              h('h2', {}, title), note, ...children) };
}

function build() {
    const map = new PoolMap();
    const speed = new Curves('Tokens per second', [{ name: 'Generated', colour: '--curve-a' },
                                                   { name: 'Prompts', colour: '--curve-b' }], SPAN_MS, rate);
    const late = new Curves('Latency', [
        { name: 'First token, p50', colour: '--curve-a' }, { name: 'p95', colour: '--curve-a', dashed: true },
        { name: 'Next token, p50', colour: '--curve-b' }, { name: 'p95', colour: '--curve-b', dashed: true },
    ], SPAN_MS, (seconds) => duration(seconds * 1000), 0.001);
    const streams = new Table('Sequences', COLUMNS.streams, 'No request runs or waits.');
    const handles = new Table('Handles', COLUMNS.handles, 'No handle is open.');
    const users = new Table('Users', COLUMNS.users, 'No user is known.');
    const figures = h('dl', { class: 'figures' }), model = h('dl', { class: 'facts' });
    const cards = {
        figures: card('Now', figures), pool: card('Block pool', map.element),
        speed: card('Tokens per second', speed.element), late: card('Latency', late.element),
        streams: card('Sequences', streams.element), users: card('Users', users.element),
        handles: card('Handles', handles.element), model: card('Model', model),
    };

    for (const [name, { element }] of Object.entries(cards))
        element.classList.add(`card-${name}`);
    const { figures: now, pool, speed: rates, late: waits, streams: work, model: facts } = cards;
    const lower = h('div', { class: 'live-lower' }, cards.users.element, cards.handles.element);

    $('panel-live').replaceChildren(
        h('h2', { class: 'off-screen' }, 'Live'),
        h('div', { class: 'live-grid' }, [now, pool, rates, waits, work].map(({ element }) => element), lower,
          facts.element));
    return { map, speed, late, streams, handles, users, figures, model, cards };
}

// Name and value of each fact; a fact without a value is left out.
function writeFacts(list, facts) {
    const known = facts.filter(([, value]) => value !== undefined && value !== null && value !== '');

    while (list.children.length > known.length)
        list.lastChild.remove();
    known.forEach(([name, value], at) => {
        if (!list.children[at])
            list.append(h('div', {}, h('dt'), h('dd')));
        setText(list.children[at].firstChild, name);
        setText(list.children[at].lastChild, String(value));
    });
}

const number = (value) => value?.toLocaleString('en');

function showStatus(status) {
    const { model = {}, blocks = {}, requests = {}, rates, uptime_s: uptime } = status;
    const used = blocks.total ? blocks.in_use / blocks.total : 0;

    writeFacts(parts.figures, [
        ['Running', number(requests.running)], ['Waiting', number(requests.waiting)],
        ['Tokens per second', rates && rate(rates.tokens_out_per_s)],
        ['Pool in use', blocks.total && percent(used)],
        ['Shared blocks', number(blocks.shared)], ['Preemptions', number(requests.preemptions)],
        ['Connections', number(status.connections?.open)],
        ['Up for', uptime !== undefined && duration(uptime * 1000)],
    ].filter(([, value]) => value !== false));
    writeFacts(parts.model, [
        ['Name', model.name], ['Architecture', model.architecture],
        ['Parameters', model.parameters && large(model.parameters)], ['Quantisation', model.quantisation],
        ['Size', model.bytes && bytes(model.bytes)], ['Backend', model.backend],
        ['Context', model.context && count(model.context, 'token')], ['Layers', model.layers],
        ['Heads', model.heads && `${model.heads} (${model.kv_heads} for keys and values)`],
        ['Width', model.width], ['Vocabulary', number(model.vocab)], ['Format', model.format],
        ['Tool calls', model.tool_dialect || 'not known'], ['Reasoning', model.reasoning ? 'yes' : 'no'],
        ['File of', model.modified_s && when(model.modified_s * 1000)],
        ['Block', blocks.positions && count(blocks.positions, 'position')],
        ['Digest', model.digest?.slice(0, 16)], ['Daemon', status.version],
    ]);
    showUsers(status.users ?? [], blocks.total ?? 0);
}

function showUsers(users, total) {
    parts.users.update(users.map((user) => ({ key: `${user.uid} ${user.principal}`, cells: [
        userName(user), user.running, user.waiting, number(user.blocks),
        total ? percent(user.blocks / total) : '', number(user.cached_blocks), number(user.tokens_out)] })));
}

function showCurves(status) {
    const seen = Boolean(status?.rates);

    percentiles.add(status?.latency);
    parts.speed.add(seen ? [status.rates.tokens_out_per_s, status.rates.tokens_in_per_s] : [null, null]);
    parts.late.add([['time_to_first_token_seconds', 0.5], ['time_to_first_token_seconds', 0.95],
                    ['inter_token_latency_seconds', 0.5], ['inter_token_latency_seconds', 0.95]]
        .map(([name, share]) => percentiles.of(name, share)));
    if (status)
        for (const name of ['speed', 'late']) {
            setText(parts.cards[name].note, 'Only the daemon’s owner and its gateway see this.');
            show(parts.cards[name].note, !seen);
        }
}

async function end(number, what) {
    if (!await ask({ title: `End ${what} ${number}?`, yes: 'End it', danger: true,
                     text: what === 'sequence' ? 'Its client gets what was written so far.'
                                               : 'Its client cannot continue it.' }))
        return;
    try {
        await request(`samovar/work/${encodeURIComponent(number)}`, { method: 'DELETE' });
        toast(`It ends: ${what} ${number}`);
    } catch (error) {
        toast(error.message);
    }
}

function endButton(number, what) {
    return () => h('button', { type: 'button', class: 'button small', 'aria-label': `End ${what} ${number}`,
                               onclick: () => end(number, what) }, 'End');
}

// How much of the prompt is read, and how much of it the cache had.
function promptWords({ prompt, prompt_done: done, prompt_found: found }) {
    if (!prompt)
        return '';
    return number(prompt) + (done < prompt ? `, ${percent(done / prompt)} read` : '') +
           (found ? `, ${percent(found / prompt)} cached` : '');
}

function showWork({ streams, handles }) {
    parts.streams.update(streams.map((row) => ({
        key: row.number, last: endButton(row.number, 'sequence'),
        cells: [row.number, userName(row), row.priority,
                row.waits_for ? `${row.state}: ${row.waits_for}` : row.state,
                promptWords(row),
                number(row.tokens), duration(row.age_ms)] })));
    parts.handles.update((handles ?? []).map((row) => ({
        key: row.number, last: endButton(row.number, 'handle'),
        cells: [row.number, userName(row), number(row.tokens), duration(row.age_ms),
                row.busy ? 'yes' : 'no'] })));
}

// ---- asking ----

// A large pool comes in several replies.
async function readPool(path, options) {
    const replies = [await getJson(path, options)];

    for (let { blocks, next } = replies[0]; next < blocks; ) {
        const reply = await getJson(`${path}?from=${next}`, options);

        replies.push(reply);
        if (!(reply.next > next))
            break; // it would never end
        next = reply.next;
    }
    return joinPool(replies);
}

const SOURCES = [
    { path: 'samovar/status', names: ['figures', 'model', 'users', 'speed', 'late'], read: getJson,
      put: showStatus },
    { path: 'samovar/work', names: ['streams', 'handles'], read: getJson, put: showWork },
    { path: 'samovar/pool', names: ['pool'], read: readPool, put: (pool) => parts.map.update(pool) },
];

function note(names, text) {
    for (const name of names) {
        setText(parts.cards[name].note, text);
        show(parts.cards[name].note, Boolean(text));
    }
}

// What a route tells; null: nothing, and the cards say why.  A server of another version may lack
// some: they are not asked again until the tab is opened again.
async function take({ path, names, read, put }) {
    if (missing.has(path))
        return null;
    try {
        const data = await read(path, { polite: true });

        note(names, '');
        put(data);
        return data;
    } catch (error) {
        if (error.status === 404)
            missing.add(path);
        note(names, error.status === 404 ? `This server does not tell it: there is no /${path}.`
                                         : error.message);
        return null;
    }
}

async function look() {
    const mine = ++turn;

    clearTimeout(timer);
    if (!shown || document.hidden)
        return;
    const [status] = await Promise.all(SOURCES.map(take));

    showCurves(status);
    if (mine === turn)
        timer = setTimeout(look, EVERY_MS);
}

export function showLive() {
    parts ??= build();
    shown = true;
    missing.clear();
    look();
}

export function hideLive() {
    shown = false;
    clearTimeout(timer);
}

document.addEventListener('visibilitychange', () => shown && look());
