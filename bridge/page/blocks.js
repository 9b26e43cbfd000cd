// Where does a block of Markdown end?  And what is it, as elements?
//
// scan() looks at the text from a place on.  It never looks further than BLOCK_CHARS: a longer
// block is cut there, so the work for a piece of text does not depend on what came before it.

import { h } from './dom.js';
import { appendInline } from './inline.js';

const BLOCK_CHARS = 6000, DEPTH = 6;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}>/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const BLANK = /^[ \t]*$/;
const INDENTED = /^(?: {2,}|\t)/;

// The line at this place, without its end.  `next`: where the next one begins; -1: there is none.
function lineAt(text, at) {
    const end = text.indexOf('\n', at);

    return end < 0 ? { line: text.slice(at), next: -1 } : { line: text.slice(at, end), next: end + 1 };
}

function beginsBlock(line) {
    return FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || RULE.test(line) ||
           ITEM.test(line);
}

function kindOf(text, line, next) {
    if (BLANK.test(line))
        return 'blank';
    if (FENCE.test(line))
        return 'code';
    if (HEADING.test(line))
        return 'heading';
    if (RULE.test(line))
        return 'rule';
    if (QUOTE.test(line))
        return 'quote';
    if (ITEM.test(line))
        return 'list';
    if (line.includes('|') && next >= 0 && DELIMITERS.test(lineAt(text, next).line))
        return 'table';
    return 'paragraph';
}

// Does this line still belong to the block?
function continues(kind, line, wasBlank) {
    if (kind === 'quote')
        return QUOTE.test(line);
    if (kind === 'list')
        return ITEM.test(line) || INDENTED.test(line) || BLANK.test(line) ||
               (!wasBlank && !beginsBlock(line));
    return !BLANK.test(line) && !beginsBlock(line);
}

// A block that is longer than it may be: cut behind a line, or else a word.
function cut(text, at) {
    const part = text.slice(at, at + BLOCK_CHARS);
    const line = part.lastIndexOf('\n'), word = part.lastIndexOf(' ');
    let length = line > BLOCK_CHARS / 4 ? line + 1 : word > BLOCK_CHARS / 4 ? word + 1 : BLOCK_CHARS;

    if (/[\uD800-\uDBFF]/.test(part[length - 1]))
        length--;
    return at + length;
}

// The block that begins at this place: { kind, end, closed, info, cut }.  closed false: more text
// may change it.  For code and tables, which grow, the end is that of their first line or two.
export function scan(text, at, done) {
    let { line, next } = lineAt(text, at);
    const kind = kindOf(text, line, next), block = { kind, closed: true };
    const partial = next < 0 && !done;
    const fence = kind === 'code' ? FENCE.exec(line) : null;

    if (partial && kind !== 'paragraph' && kind !== 'list' && kind !== 'quote')
        return { ...block, end: text.length, closed: false };
    if (fence)
        return { ...block, info: fence[2], fence: fence[1], end: next < 0 ? text.length : next };
    if (kind === 'table') {
        const second = lineAt(text, next);

        if (second.next < 0 && !done)
            return { ...block, kind: 'paragraph', end: text.length, closed: false };
        return { ...block, end: second.next < 0 ? text.length : second.next };
    }
    if (kind === 'blank' || kind === 'heading' || kind === 'rule')
        return { ...block, end: next < 0 ? text.length : next };

    let wasBlank = false;

    for (let end = next; ; end = next) {
        if ((end < 0 ? text.length : end) - at > BLOCK_CHARS)
            return { ...block, end: cut(text, at), cut: true };
        if (end < 0)
            return { ...block, end: text.length, closed: done };
        ({ line, next } = lineAt(text, end));
        // A line that is not whole may still become anything.
        if (next < 0 && !done)
            return (text.length - at > BLOCK_CHARS) ? { ...block, end: cut(text, at), cut: true }
                                                    : { ...block, end: text.length, closed: false };
        if (!continues(kind, line, wasBlank) ||
            (kind === 'paragraph' && kindOf(text, line, next) === 'table'))
            return { ...block, end };
        wasBlank = BLANK.test(line);
    }
}

// ---- elements ----

export function cells(line) {
    const parts = line.trim().replace(/^\|/, '').replace(/\|$/, '').split(/(?<!\\)\|/);

    return parts.map((part) => part.replaceAll('\\|', '|').trim());
}

// "left", "center", "right" or "" for each column, of the line below the head of a table.
export function alignments(line) {
    return cells(line).map((cell) => cell.startsWith(':') && cell.endsWith(':') ? 'center'
        : cell.endsWith(':') ? 'right' : cell.startsWith(':') ? 'left' : '');
}

export function row(tag, line, aligned) {
    const words = cells(line).slice(0, Math.max(aligned.length, 1));

    return h('tr', {}, words.map((word, column) => {
        const cell = h(tag, { class: aligned[column] ? `to-${aligned[column]}` : null });

        appendInline(cell, word);
        return cell;
    }));
}

function paragraph(text, isCut) {
    const made = h('p', { class: isCut ? 'is-cut' : null });

    appendInline(made, text.trim());
    return made;
}

function listOf(text, depth) {
    const lines = text.split('\n'), first = ITEM.exec(lines[0]);
    const ordered = /\d/.test(first[2]);
    const list = h(ordered ? 'ol' : 'ul',
                   { start: ordered && !/^1[.)]/.test(first[2]) ? parseInt(first[2], 10) : null });
    let item = null, margin = 0;
    const flush = () => {
        if (!item)
            return;
        const made = h('li'), task = /^\[([ xX])\] /.exec(item[0] ?? '');

        if (task) {
            item[0] = item[0].slice(4);
            made.setAttribute('class', 'task');
            made.append(h('input', { type: 'checkbox', disabled: true, checked: task[1] !== ' ',
                                     'aria-label': 'Task' }), ' ');
        }
        fill(made, item.join('\n'), depth + 1, true);
        list.append(made);
    };

    for (const line of lines) {
        const match = ITEM.exec(line);

        // Deeper items have more blanks than the text of their parent begins with, or two.
        if (match && (!item || match[1].length < Math.min(margin, 2))) {
            flush();
            margin = match[0].length;
            item = [line.slice(match[0].length)];
        } else {
            const blanks = /^[ \t]*/.exec(line)[0].length;

            item.push(line.slice(Math.min(blanks, margin)));
        }
    }
    flush();
    return list;
}

// Blocks within an item or a quote.  A single paragraph of an item needs no element.
function fill(to, text, depth, tight) {
    for (let at = 0; at < text.length; ) {
        const block = scan(text, at, true), words = text.slice(at, block.end);

        if (block.kind === 'code')
            at = fillCode(to, text, block);
        else if (block.kind === 'table')
            at = fillTable(to, text, at, block.end);
        else {
            if (block.kind === 'paragraph' && tight && at === 0)
                appendInline(to, words.trim());
            else if (block.kind !== 'blank')
                to.append(element(block, words, depth));
            at = block.end;
        }
    }
}

function fillCode(to, text, { fence, end }) {
    const close = closeOf(text, end, fence), until = close ? close.at : text.length;

    to.append(h('pre', { class: 'inner-code', tabindex: '0' }, h('code', {}, text.slice(end, until))));
    return close ? close.end : text.length;
}

function fillTable(to, text, at, end) {
    const [head, rule] = text.slice(at, end).split('\n'), aligned = alignments(rule);
    const body = h('tbody');

    for (;;) {
        const { line, next } = lineAt(text, end);

        if (BLANK.test(line) || !line.includes('|'))
            break;
        body.append(row('td', line, aligned));
        end = next < 0 ? text.length : next;
    }
    to.append(h('table', {}, h('thead', {}, row('th', head, aligned)), body));
    return end;
}

// The line that ends a block of code, at or behind this place: { at, end }; null: not yet.
export function closeOf(text, at, fence) {
    const wanted = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}[ \\t]*$`, 'm');
    const match = wanted.exec(text.slice(at));

    if (!match)
        return null;
    const end = at + match.index + match[0].length;

    return { at: at + match.index, end: Math.min(text.length, end + 1) };
}

// The element of a block that scan() has found; not for code and tables at the top.
export function element(block, text, depth = 0) {
    if (depth >= DEPTH)
        return h('p', {}, text.trim());
    switch (block.kind) {
    case 'heading': {
        const [, marks, words] = HEADING.exec(text.replace(/\n$/, ''));
        const made = h(`h${Math.min(6, marks.length + 2)}`, { class: `level-${marks.length}` });

        appendInline(made, words ?? '');
        return made;
    }
    case 'rule':
        return h('hr');
    case 'quote': {
        const made = h('blockquote');

        fill(made, text.replace(/^ {0,3}> ?/gm, ''), depth + 1, false);
        return made;
    }
    case 'list':
        return listOf(text.replace(/\n+$/, ''), depth);
    default:
        return paragraph(text, block.cut);
    }
}
