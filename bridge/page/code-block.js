// A block of code that grows: lines are appended, never drawn again.  A long one shows its
// beginning, and the rest when the person asks for it.

import { copyText, h, icon, setText } from './dom.js';

const PART_LINES = 100, PART_CHARS = 8192;
const SHOWN_CHARS = 24000, SHOWN_LINES = 400;

// A text that is whole already.
export function codeOf(language, text) {
    const block = new CodeBlock(language);

    block.append(text);
    block.draw();
    return block.element;
}

export class CodeBlock {
    constructor(language) {
        this.source = '';
        this.shown = 0;      // characters of the source that are in the page
        this.shownLines = 0;
        this.lines = 0;
        this.whole = false;  // the person wants all of it
        this.code = h('code');
        this.name = h('span', { class: 'code-name' }, language || 'text');
        this.more = h('button', { type: 'button', class: 'code-more', hidden: true,
                                  onclick: () => this.expand() });
        this.copy = h('button', { type: 'button', class: 'code-copy', 'aria-label': 'Copy code',
                                  onclick: () => this.toClipboard() },
                      icon('copy'), h('span', {}, 'Copy'));
        this.element = h('div', { class: 'code' },
            h('div', { class: 'code-bar' }, this.name, this.copy),
            h('pre', { tabindex: '0', 'aria-label': `Code, ${language || 'text'}` }, this.code),
            this.more);
    }

    append(text) {
        this.source += text;
        for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1))
            this.lines++;
    }

    get isFull() {
        return !this.whole && (this.shown >= SHOWN_CHARS || this.shownLines >= SHOWN_LINES);
    }

    // Where the source ends for the eye: a last newline would be an empty line.
    get end() {
        return this.source.length - (this.source.endsWith('\n') ? 1 : 0);
    }

    // Puts some of the source into the page.  True: there is more to do.
    step() {
        if (this.isFull || this.shown >= this.end) {
            this.showMore();
            return false;
        }
        if (!this.part || this.part.lines >= PART_LINES || this.part.chars >= PART_CHARS) {
            this.part = { node: document.createTextNode(''), lines: 0, chars: 0 };
            this.code.append(h('span', { class: 'code-part' }, this.part.node));
        }
        const until = Math.min(this.end, this.shown + PART_CHARS - this.part.chars);
        let end = this.shown;

        while (end < until && this.part.lines < PART_LINES) {
            const line = this.source.indexOf('\n', end);

            end = line < 0 || line >= until ? until : line + 1;
            if (this.source[end - 1] === '\n') {
                this.part.lines++;
                this.shownLines++;
            }
        }
        this.part.node.appendData(this.source.slice(this.shown, end));
        this.part.chars += end - this.shown;
        this.shown = end;
        return true;
    }

    showMore() {
        const left = this.isFull && this.shown < this.end;

        this.more.hidden = !left;
        if (left) {
            const lines = this.lines + (this.source.endsWith('\n') ? 0 : 1);

            setText(this.more, `Show all ${lines.toLocaleString('en')} lines`);
        }
    }

    // Draws what may be shown, some each frame.
    draw() {
        const deadline = performance.now() + 8;

        while (this.step())
            if (performance.now() > deadline) {
                requestAnimationFrame(() => this.draw());
                return;
            }
    }

    expand() {
        this.whole = true;
        this.code.parentElement.focus();
        this.draw();
    }

    async toClipboard() {
        const label = this.copy.lastChild;

        setText(label, await copyText(this.source) ? 'Copied' : 'Not allowed');
        setTimeout(() => setText(label, 'Copy'), 1500);
    }
}
