// The tokens of an answer, each in the colour of its probability.  Pointing at one, or going to it
// with the arrow keys, shows what else might have come; taking that begins a branch there.

import { h } from './dom.js';

const PER_FRAME = 400;

export function probability(log) {
    const share = Math.exp(log);

    return share < 0.001 ? '< 0.1 %' : `${(share * 100).toFixed(1)} %`;
}

function levelOf(log) {
    const share = Math.exp(log);

    return share > 0.9 ? 4 : share > 0.6 ? 3 : share > 0.3 ? 2 : share > 0.1 ? 1 : 0;
}

// A blank or a newline, so that it can be seen.
function visible(text) {
    return JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll(' ', '␣') || '(nothing)';
}

// The text of the first `count` tokens; a character may be divided among several.
function textOf(tokens, count) {
    const encoder = new TextEncoder(), parts = tokens.slice(0, count)
        .map((token) => token.b ?? [...encoder.encode(token.t)]);

    return new TextDecoder().decode(new Uint8Array(parts.flat()));
}

export class TokenView {
    // onfork(text): the person wants another token; text is what comes before it, and it.
    constructor(message, onfork) {
        this.message = message;
        this.onfork = onfork;
        this.drawn = 0;
        this.spans = h('div', { class: 'tokens', role: 'listbox', tabindex: '0',
                                'aria-label': 'Tokens of the answer',
                                onkeydown: (event) => this.onKey(event),
                                onclick: (event) => this.onPoint(event),
                                onpointerover: (event) => this.onPoint(event) });
        this.detail = h('div', { class: 'token-detail', 'aria-live': 'polite' },
                        'Point at a token, or use the arrow keys.');
        this.element = h('div', { class: 'token-view' }, this.spans, this.detail);
        this.update();
    }

    update() {
        const { tokens = [] } = this.message, until = Math.min(tokens.length, this.drawn + PER_FRAME);

        for (; this.drawn < until; this.drawn++) {
            const { t, p } = tokens[this.drawn];

            this.spans.append(h('span', { class: `token p${levelOf(p)}`, role: 'option',
                                          'data-at': this.drawn }, t));
        }
        if (this.drawn < tokens.length)
            requestAnimationFrame(() => this.update());
    }

    onPoint({ target }) {
        if (target.dataset?.at !== undefined)
            this.select(Number(target.dataset.at));
    }

    onKey(event) {
        const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];

        if (!move)
            return;
        event.preventDefault();
        this.select(Math.max(0, Math.min(this.drawn - 1, (this.at ?? -1) + move)));
    }

    select(at) {
        if (at === this.at)
            return;
        this.spans.querySelector('[aria-selected]')?.removeAttribute('aria-selected');
        this.at = at;
        this.spans.children[at]?.setAttribute('aria-selected', 'true');
        this.tell(this.message.tokens[at], at);
    }

    tell(token, at) {
        const rows = token.top.map(([text, log]) => {
            const chosen = text === token.t;

            return h('li', { class: chosen ? 'chosen' : null },
                h('meter', { min: '0', max: '1', value: Math.exp(log), 'aria-hidden': 'true' }),
                h('code', {}, visible(text)), h('span', { class: 'muted' }, ` ${probability(log)}`),
                chosen || text.includes('\uFFFD') ? null : h('button', {
                    type: 'button', class: 'link',
                    'aria-label': `Branch with ${visible(text)}`,
                    onclick: () => this.onfork(textOf(this.message.tokens, at) + text),
                }, 'branch here'));
        });

        this.detail.replaceChildren(
            h('div', {}, 'Token ', h('code', {}, visible(token.t)), ` ${probability(token.p)}`),
            h('ol', { class: 'token-top' }, rows));
    }
}
