// Parts of a message: reasoning, tool calls with the answers of the person, the result of a schema,
// and the line that says how fast it was.

import { codeOf } from './code-block.js';
import { h, setText, show } from './dom.js';
import { bytes, count, duration, percent, rate } from './format.js';
import { Markdown } from './markdown.js';
import { validate } from './schema.js';

// ---- reasoning ----

export class Reasoning {
    constructor() {
        this.summary = h('summary');
        this.body = h('div', { class: 'markdown' });
        this.markdown = new Markdown(this.body);
        this.element = h('details', { class: 'reasoning', hidden: true,
                                      ontoggle: () => this.message && this.update(this.message) },
                         this.summary, this.body);
    }

    update(message) {
        this.message = message;
        show(this.element, Boolean(message.reasoning));
        if (!message.reasoning)
            return;
        const thinks = message.reasoning_since && message.state === 'running';
        const ms = (message.reasoned_ms ?? 0) + (thinks ? Date.now() - message.reasoning_since : 0);

        setText(this.summary, thinks ? `Thinking… ${duration(ms)}` : `Thought for ${duration(ms)}`);
        this.element.classList.toggle('is-running', Boolean(thinks));
        if (this.element.open)
            this.markdown.set(message.reasoning, !thinks);
    }
}

// ---- tool calls ----

function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;
    }
}

const ARGUMENTS_CHARS = 2000;

// onresults([text]): the person has answered all calls.
export class Calls {
    constructor(onresults) {
        this.onresults = onresults;
        this.cards = [];
        this.list = h('div', { class: 'calls' });
        this.send = h('button', { type: 'submit', class: 'button primary' }, 'Send results');
        this.element = h('form', { hidden: true, 'aria-label': 'Tool calls',
                                   onsubmit: (event) => this.onSubmit(event) }, this.list, this.send);
    }

    // open: the calls wait for their results.
    update(message, open) {
        const calls = message.calls ?? [];

        show(this.element, calls.length > 0);
        show(this.send, open);
        for (const [at, call] of calls.entries()) {
            this.cards[at] ??= this.addCard(at);
            const card = this.cards[at];

            setText(card.name, call.name);
            this.showArguments(card, call.arguments, message.state === 'running');
            show(card.label, open);
        }
    }

    addCard(at) {
        const id = `result-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
        const name = h('code', { class: 'call-name' }), input = h('div');
        const result = h('textarea', { id, rows: '3', spellcheck: 'false',
                                       placeholder: 'What does the tool return?' });
        const label = h('div', { class: 'call-result', hidden: true },
                        h('label', { for: id }, `Result of call ${at + 1}`), result);

        this.list.append(h('section', { class: 'call', 'aria-label': `Tool call ${at + 1}` },
            h('div', { class: 'call-head' }, 'Calls ', name),
            input, label));
        return { name, input, label, result };
    }

    // While they come, their end; then all of them.
    showArguments(card, text, runs) {
        if (card.text === text && card.runs === runs)
            return;
        Object.assign(card, { text, runs });
        card.input.replaceChildren(runs
            ? h('pre', { class: 'inner-code', tabindex: '0' }, h('code', {}, text.slice(-ARGUMENTS_CHARS)))
            : codeOf('json', pretty(text)));
    }

    onSubmit(event) {
        event.preventDefault();
        this.onresults(this.cards.map(({ result }) => result.value));
    }
}

// ---- the result of a schema ----

export class Result {
    constructor() {
        this.verdict = h('span', { class: 'verdict' });
        this.code = h('div');
        this.element = h('div', { class: 'result', role: 'group', 'aria-label': 'JSON of the answer',
                                  hidden: true }, this.verdict, this.code);
    }

    // True: the text of the message is shown here, and not as Markdown.
    update(message) {
        const shown = Boolean(message.schema) && message.state !== 'running' && message.text !== '';

        show(this.element, shown);
        if (!shown || this.text === message.text)
            return shown;
        const { value, why } = validate(message.text, message.schema);

        this.text = message.text;
        this.element.classList.toggle('is-bad', Boolean(why));
        setText(this.verdict, why ? `Invalid: ${why}` : 'Valid JSON, follows the schema');
        this.code.replaceChildren(codeOf('json', value === undefined ? message.text
                                                                     : JSON.stringify(value, null, 2)));
        return shown;
    }
}

// ---- files ----

export function fileChips(files) {
    return h('ul', { class: 'files', 'aria-label': 'Attachments' }, files.map(({ name, text }) =>
        h('li', {}, h('details', {}, h('summary', {}, `${name} (${bytes(text.length)})`),
                      h('pre', { class: 'inner-code', tabindex: '0' },
                        h('code', {}, text.slice(0, 20000)))))));
}

// ---- status ----

const MISSES = {
    __proto__: null,
    nothing_cached: 'nothing was cached', prefix_changed: 'the beginning of the prompt has changed',
    tools_changed: 'the tools have changed', system_changed: 'the system prompt has changed',
    messages_changed: 'earlier messages have changed', input_changed: 'earlier messages have changed',
    model_changed: 'the model has changed', evicted: 'it was evicted', unknown: 'unknown',
};

const WAITS = {
    __proto__: null,
    turn: 'others are before it', slot: 'all slots are taken', windows: 'too few window pages',
    blocks: 'too few free blocks', forecast: 'the pool would become full', share: 'your share is used',
    prefix: 'its beginning is being computed', reader: 'its reader is slow',
};

const waitWords = (name) => WAITS[name] ?? name;

const ENDS = { __proto__: null, length: 'reached the token limit', tool_calls: 'calls tools',
               content_filter: 'filtered' };

function progressWords({ progress, pieces, first }) {
    if (progress.lost)
        return 'The connection is lost; trying again…';
    if (first) {
        const seconds = (performance.now() - first) / 1000;

        return `${count(pieces, 'token')} · ${rate(seconds > 0.2 ? (pieces - 1) / seconds : 0)} tokens/s`;
    }
    if (progress.total && progress.done)
        return `Reading the prompt: ${percent(progress.done / progress.total)} of ` +
               count(progress.total, 'token');
    const place = progress.position ? `, place ${progress.position} in the queue` : '';

    return `Waiting${place}${progress.waits ? `: ${waitWords(progress.waits)}` : ''}…`;
}

export function missWords({ prompt, cached, cache_miss: why }) {
    return !prompt || !why || cached >= prompt - 1 ? '' : MISSES[why] ?? why;
}

function cacheWords(stats, withMiss) {
    const { prompt, cached } = stats;
    // A new chat shares its beginning with others by chance only: that it does not is no news.
    const miss = withMiss || stats.cache_miss !== 'prefix_changed' ? missWords(stats) : '';

    return prompt ? `prompt ${prompt.toLocaleString('en')}, ${percent(cached / prompt)} cached` +
                    (miss ? ` (${miss})` : '') : '';
}

const isAnswered = (answering) => Boolean(answering?.locked && !answering.over);

// How this answer ended.
function endWords({ state, finish }) {
    return [state === 'running' ? 'Being answered in another tab' : '',
            state === 'stopped' ? 'Stopped' : '', ENDS[finish] ?? ''];
}

// What it cost.
function costWords(stats, withMiss) {
    if (!stats)
        return [];
    const { output, per_second: speed, first_ms: first, queued_ms: queued } = stats;

    return [count(output, 'token'), speed ? `${rate(speed)} tokens/s` : '',
            first ? `first after ${duration(first)}` : '', queued > 5 ? `queued ${duration(queued)}` : '',
            cacheWords(stats, withMiss)];
}

const line = (words) => words.filter(Boolean).join(' · ');

// withMiss: why the cache did not have all of the prompt, too.
export function statusWords(message, answering, withMiss) {
    return isAnswered(answering) ? progressWords(answering)
                                 : line([...endWords(message), ...costWords(message.stats, withMiss)]);
}

// Of an answer beside others: not what rowWords() tells of all of them.
export function cardWords(message, answering) {
    if (isAnswered(answering))
        return answering.first ? progressWords(answering) : '';
    return line([...endWords(message), message.stats ? count(message.stats.output, 'token') : '']);
}

// Of answers side by side: they wait for one prompt, and share it.
export function rowWords(messages, answering, withMiss) {
    const running = messages.map(answering).filter(isAnswered);
    const stats = messages.map((message) => message.stats).filter(Boolean);

    if (running.some(({ first }) => !first))
        return progressWords(running.find(({ first }) => !first));
    if (running.length || !stats.length)
        return '';
    const sum = (name) => stats.reduce((all, each) => all + each[name], 0);
    const first = stats.reduce((best, each) => each.first_ms < best.first_ms ? each : best);

    return line([`${count(sum('output'), 'token')} in ${messages.length} answers`,
                 first.first_ms ? `first after ${duration(first.first_ms)}` : '',
                 cacheWords({ prompt: sum('prompt'), cached: sum('cached'), cache_miss: first.cache_miss },
                            withMiss)]);
}
