// Curves over the last minutes.  A value may be null: then there is a gap.

import { h, setText } from './dom.js';

const HEIGHT = 110, LEFT = 52, BOTTOM = 18, TOP = 8;

// A round number that is not below this one.
function roundUp(value) {
    const unit = 10 ** Math.floor(Math.log10(value || 1));

    return [1, 2, 2.5, 5, 10].map((factor) => factor * unit).find((round) => round >= value) ?? value;
}

function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export class Curves {
    // lines: [{ name, colour: '--curve-a', dashed }]; write(value): as people read it.
    // log: the smallest value of a logarithmic scale; 0: the scale is linear.
    constructor(label, lines, span, write, log = 0) {
        Object.assign(this, { label, lines, span, write, log });
        this.samples = [];
        this.canvas = h('canvas', { class: 'curves', role: 'img', 'aria-label': label });
        this.now = lines.map(() => h('b'));
        this.element = h('div', {},
            h('ul', { class: 'legend' }, lines.map((line, at) => this.legendOf(line, this.now[at]))),
            this.canvas);
        new ResizeObserver(() => this.draw()).observe(this.canvas);
    }

    legendOf({ name, colour: of, dashed }, value) {
        const stroke = `stroke s${of.replace('--', '-')}${dashed ? ' is-dashed' : ''}`;

        return h('li', {}, h('span', { class: stroke, 'aria-hidden': 'true' }),
                 h('span', {}, `${name}: `, value));
    }

    // values: one for each line.
    add(values) {
        const at = Date.now();

        this.samples.push({ at, values });
        while (this.samples[0].at < at - this.span)
            this.samples.shift();
        const words = values.map((value) => (value === null ? '–' : this.write(value)));

        this.now.forEach((element, line) => setText(element, words[line]));
        this.canvas.setAttribute('aria-label', `${this.label}: ` +
            this.lines.map(({ name }, line) => `${name} ${words[line]}`).join(', '));
        this.draw();
    }

    draw() {
        const width = this.canvas.clientWidth, ratio = Math.min(2, devicePixelRatio || 1);

        if (!width)
            return;
        const context = this.canvas.getContext('2d');
        const most = Math.max(0, ...this.samples.flatMap(({ values }) => values.map((value) => value ?? 0)));
        const top = Math.max(roundUp(most), this.log * 10), y = this.scale(top);

        this.canvas.width = width * ratio;
        this.canvas.height = HEIGHT * ratio;
        context.scale(ratio, ratio);
        context.font = '11px system-ui, sans-serif';
        this.drawScale(context, width, top, y);
        this.lines.forEach((line, at) => this.drawLine(context, width, line, at, y));
    }

    // From a value to its place on the canvas.
    scale(top) {
        const { log } = this, range = HEIGHT - BOTTOM - TOP;
        const ofLog = (value) => Math.log(Math.max(value, log) / log) / Math.log(top / log);
        const share = (value) => (log ? ofLog(value) : value / (top || 1));

        return (value) => HEIGHT - BOTTOM - share(value) * range;
    }

    drawScale(context, width, top, y) {
        context.strokeStyle = colour('--line');
        context.fillStyle = colour('--muted');
        context.textAlign = 'right';
        const marks = this.log ? [this.log, Math.sqrt(this.log * top), top] : [0, top / 2, top];

        for (const mark of marks) {
            const place = Math.round(y(mark)) + 0.5;

            context.beginPath();
            context.moveTo(LEFT, place);
            context.lineTo(width, place);
            context.stroke();
            context.fillText(this.write(mark), LEFT - 6, place + 4);
        }
        context.textAlign = 'left';
        context.fillText(`${Math.round(this.span / 60000)} min ago`, LEFT, HEIGHT - 4);
        context.textAlign = 'right';
        context.fillText('now', width - 2, HEIGHT - 4);
    }

    drawLine(context, width, line, at, y) {
        const now = Date.now();
        let draws = false;

        context.strokeStyle = colour(line.colour);
        context.lineWidth = 1.8;
        context.lineJoin = 'round';
        context.setLineDash(line.dashed ? [5, 4] : []);
        context.beginPath();
        for (const sample of this.samples) {
            const value = sample.values[at], x = width - (now - sample.at) / this.span * (width - LEFT);

            if (value !== null && draws)
                context.lineTo(x, y(value));
            else if (value !== null)
                context.moveTo(x, y(value));
            draws = value !== null;
        }
        context.stroke();
        context.setLineDash([]);
    }
}
