// Emphasis, code, links within a line of Markdown.  Works in one pass: a mark that finds no end is
// remembered, so a text of many open marks is not searched again for each of them.

import { h } from './dom.js';

const DEPTH = 6, TRIES = 40;
const SPECIAL = /[\\`*_~[!<\n]|https?:\/\//g;
const WORD = /[\p{L}\p{N}]/u;

// The address of a link that may be followed: http and https only.  null: it is no link.
function safeAddress(text) {
    try {
        const url = new URL(text);

        return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null;
    } catch {
        return null;
    }
}

export function link(address, ...children) {
    return h('a', { href: address, target: '_blank', rel: 'noopener noreferrer' }, ...children);
}

class Inline {
    constructor(text) {
        this.text = text;
        this.open = new Map(); // mark: no end of it at or behind this place
    }

    // Where the mark comes next, from `at` on and before `end`; -1: nowhere.
    find(mark, at, end) {
        if (at >= (this.open.get(mark) ?? Infinity))
            return -1;
        const found = this.text.indexOf(mark, at);

        if (found < 0)
            this.open.set(mark, at);
        return found < 0 || found + mark.length > end ? -1 : found;
    }

    parse(to, at, end, depth) {
        let plain = at;
        const flush = (until) => {
            if (until > plain)
                to.append(this.text.slice(plain, until));
        };

        SPECIAL.lastIndex = at;
        for (let match; (match = SPECIAL.exec(this.text)) && match.index < end; ) {
            const here = match.index;
            const made = this.special(match[0], here, end, depth);

            if (made) {
                flush(here);
                to.append(made.node);
                plain = made.end;
            }
            SPECIAL.lastIndex = made ? made.end : here + match[0].length;
        }
        flush(end);
    }

    // { node, end } of what begins here; null: it is plain text.
    special(mark, at, end, depth) {
        switch (mark) {
        case '\n':
            return { node: h('br'), end: at + 1 };
        case '\\':
            return /[\p{P}\p{S}]/u.test(this.text[at + 1] ?? '')
                ? { node: this.text[at + 1], end: at + 2 } : null;
        case '`':
            return this.code(at, end);
        case '[':
            return this.link(at, end, depth, false);
        case '!':
            return this.text[at + 1] === '[' ? this.link(at + 1, end, depth, true) : null;
        case '<':
            return this.angle(at, end);
        case '*': case '_': case '~':
            return depth < DEPTH ? this.emphasis(mark, at, end, depth) : null;
        default:
            return this.bare(at, end);
        }
    }

    code(at, end) {
        let ticks = 1;

        while (this.text[at + ticks] === '`')
            ticks++;
        const close = this.find('`'.repeat(ticks), at + ticks, end);

        if (close < 0)
            return { node: '`'.repeat(ticks), end: at + ticks };
        const inner = this.text.slice(at + ticks, close).replaceAll('\n', ' ');

        return { node: h('code', {}, /^ .* $/.test(inner) ? inner.slice(1, -1) : inner),
                 end: close + ticks };
    }

    emphasis(mark, at, end, depth) {
        const twice = this.text[at + 1] === mark, marks = twice ? mark + mark : mark;
        const from = at + marks.length;
        const tag = mark === '~' ? 'del' : twice ? 'strong' : 'em';

        if ((mark === '~' && !twice) || from >= end || /\s/.test(this.text[from]) ||
            (mark === '_' && at > 0 && WORD.test(this.text[at - 1])))
            return null;
        let tries = 0;

        for (let close = from; (close = this.find(marks, close, end)) >= 0; close += marks.length) {
            if (tries++ > TRIES)
                return null;
            // A single mark may be the half of a double one.
            const double = !twice && this.text[close + 1] === mark;
            const inWord = mark === '_' && WORD.test(this.text[close + marks.length] ?? '');

            if (double) {
                close++;
                continue;
            }
            if (close === from || /\s/.test(this.text[close - 1]) || inWord)
                continue;
            const node = h(tag);

            new Inline(this.text.slice(from, close)).parse(node, 0, close - from, depth + 1);
            return { node, end: close + marks.length };
        }
        return null;
    }

    // [text](address) and ![text](address).  An image is never loaded: its server would see who
    // reads the answer.  It is shown as a link.
    link(at, end, depth, isImage) {
        const close = this.find('](', at, end);
        const stop = close < 0 ? -1 : this.find(')', close + 2, end);

        if (stop < 0 || this.text.slice(at + 1, close).includes('\n\n'))
            return null;
        const words = this.text.slice(at + 1, close);
        const address = safeAddress(this.text.slice(close + 2, stop).trim().split(/\s/)[0]);
        const node = address ? link(address) : h('span', { class: 'no-link' });

        if (isImage)
            node.append(`image: ${words || 'without a description'}`);
        else if (depth < DEPTH)
            new Inline(words).parse(node, 0, words.length, DEPTH - 1);
        else
            node.append(words);
        return { node, end: stop + 1 };
    }

    angle(at, end) {
        const close = this.find('>', at, end);
        const address = close < 0 || close - at > 2000 ? null : safeAddress(this.text.slice(at + 1, close));

        return address ? { node: link(address, this.text.slice(at + 1, close)), end: close + 1 } : null;
    }

    bare(at, end) {
        const [match] = /^[^\s<>"'`]+/.exec(this.text.slice(at, Math.min(end, at + 2000))) ?? [''];
        let words = match.replace(/[.,;:!?*_~\]]+$/, '');

        // A bracket at the end belongs to the sentence, unless it was opened in the address.
        if (words.endsWith(')') && !words.includes('('))
            words = words.replace(/[.,;:!?*_~)\]]+$/, '');
        const address = safeAddress(words);

        return address ? { node: link(address, words), end: at + words.length } : null;
    }
}

export function appendInline(to, text) {
    new Inline(text).parse(to, 0, text.length, 0);
}
