// Shows a Markdown text that grows.  Blocks that are whole are drawn once.  Only the last block, of
// bounded length, is drawn again with each frame; code and tables only get what is new.  A frame
// works a few milliseconds, and the rest waits for the next one: so a megabyte, or ten thousand
// lines, never hold up the page.

import { alignments, closeOf, element, row, scan } from './blocks.js';
import { CodeBlock } from './code-block.js';
import { h } from './dom.js';

// A frame should take so long, with the layout that it causes; it draws for at most so long.
const FRAME_MS = 16, DRAW_MS = 8;
// Characters whose elements the browser may skip together while they are out of sight.
const PART_CHARS = 6000;
const TABLE_ROWS = 60;

export class Markdown {
    // ondrawn(): after each frame that has changed something.
    constructor(root, ondrawn = () => {}) {
        this.root = root;
        this.ondrawn = ondrawn;
        this.reset();
    }

    reset() {
        this.text = '';
        this.at = 0;        // all before it is drawn for good
        this.done = false;
        this.grows = null;  // the open block of code or table
        this.tail = null;   // the element of the last block, which is drawn again
        this.part = null;
        this.partFrom = 0;
        this.drawMs = DRAW_MS / 2;
        this.root.replaceChildren();
    }

    // The whole text so far.  done: no more will come.
    set(text, done) {
        const end = Math.max(0, this.text.length - 64); // enough to see that it goes on

        if (!text.startsWith(this.text.slice(end), end) || (this.done && !done))
            this.reset();
        if (text === this.text && done === this.done)
            return;
        this.text = text;
        this.done = done;
        this.schedule();
    }

    schedule() {
        this.frame ??= requestAnimationFrame(() => {
            this.frame = null;
            this.draw();
        });
    }

    draw() {
        const begun = performance.now();
        let more = true;

        this.dropTail();
        while (more && performance.now() < begun + this.drawMs)
            more = this.step();
        if (more)
            this.schedule();
        this.ondrawn();
        // What was drawn is laid out now, since the view follows its end.
        this.drawMs = performance.now() - begun > FRAME_MS ? Math.max(0.5, this.drawMs / 2)
                                                           : Math.min(DRAW_MS, this.drawMs * 1.2);
    }

    get isDrawn() {
        return !this.frame;
    }

    dropTail() {
        this.tail?.remove();
        this.tail = null;
    }

    add(made) {
        if (!this.part || this.at - this.partFrom >= PART_CHARS) {
            this.part = h('div', { class: 'part' });
            this.partFrom = this.at;
            this.root.append(this.part);
        }
        this.part.append(made);
    }

    // Draws one block, or some of one that grows.  False: there is nothing to do until more comes.
    step() {
        if (this.grows)
            return this.grows.step();
        if (this.at >= this.text.length)
            return false;
        const block = scan(this.text, this.at, this.done);

        if (!block.closed) {
            this.drawTail(block);
            return false;
        }
        if (block.kind === 'code')
            this.grows = new OpenCode(this, block);
        else if (block.kind === 'table')
            this.grows = new OpenTable(this, block);
        else if (block.kind !== 'blank')
            this.add(element(block, this.text.slice(this.at, block.end)));
        this.at = block.end;
        return true;
    }

    drawTail(block) {
        const words = this.text.slice(this.at);

        // The beginning of a fence or a table is not shown as text.
        if (block.kind === 'blank' || block.kind === 'code' || /^ {0,3}(`{1,2}|~{1,2})$/.test(words))
            return;
        this.tail = element(block.kind === 'table' ? { kind: 'paragraph' } : block, words);
        (this.part ?? this.root).append(this.tail);
    }
}

class OpenCode {
    constructor(markdown, { info, fence }) {
        this.markdown = markdown;
        this.fence = fence;
        this.block = new CodeBlock(info);
        markdown.add(this.block.element);
    }

    step() {
        const { markdown, block } = this;

        if (!this.closed)
            this.take();
        if (block.step())
            return true;
        if (this.closed || markdown.done) {
            markdown.grows = null;
            return true;
        }
        return false;
    }

    // Takes whole lines, since the last one may become the fence; of a very long line, what is there.
    take() {
        const { markdown, block } = this, { text } = markdown;
        const close = closeOf(text, markdown.at, this.fence);
        let end = close ? close.at : text.length;

        if (close && (markdown.done || text[close.end - 1] === '\n'))
            this.closed = true;
        else if (!markdown.done && text.length - markdown.at < 4096)
            end = Math.max(markdown.at, text.lastIndexOf('\n', end - 1) + 1);
        block.append(text.slice(markdown.at, end));
        markdown.at = this.closed ? close.end : end;
    }
}

class OpenTable {
    constructor(markdown, { end }) {
        const [head, rule] = markdown.text.slice(markdown.at, end).split('\n');

        this.markdown = markdown;
        this.aligned = alignments(rule);
        this.columns = row('th', head, this.aligned);
        this.body = h('tbody');
        this.rows = 0;
        markdown.add(this.frame());
    }

    frame() {
        return h('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Table' },
                 h('table', {}, h('thead', {}, this.columns), this.body));
    }

    step() {
        const { markdown } = this, { text } = markdown;
        const end = text.indexOf('\n', markdown.at);

        if (end < 0 && !markdown.done)
            return false;
        const line = text.slice(markdown.at, end < 0 ? text.length : end);

        if (!line.includes('|') || /^\s*$/.test(line)) {
            markdown.grows = null;
            return true;
        }
        // The browser lays out a table as a whole: a long one is divided.
        if (++this.rows % TABLE_ROWS === 0) {
            this.columns = this.columns.cloneNode(true);
            this.body = h('tbody');
            markdown.add(this.frame());
        }
        this.body.append(row('td', line, this.aligned));
        markdown.at = end < 0 ? text.length : end + 1;
        return true;
    }
}
