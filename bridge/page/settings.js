// The settings of a chat, in the panel at the side: system prompt, parameters, tools, schema.

import { $, announce, h, setText, show, toast, tool } from './dom.js';
import { DEFAULTS, readSchema, readTools } from './request.js';

const KEPT = 'samovar-defaults';

export function defaults() {
    try {
        return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEPT) ?? '{}') };
    } catch {
        return { ...DEFAULTS };
    }
}

const PARAMETERS = [
    ['temperature', 'Temperature', 'number', { min: 0, max: 2, step: 'any', placeholder: '1' }],
    ['top_p', 'Top p', 'number', { min: 0, max: 1, step: 'any', placeholder: '1' }],
    ['top_k', 'Top k', 'number', { min: 0, max: 1024, step: 1, placeholder: 'all' }],
    ['min_p', 'Min p', 'number', { min: 0, max: 1, step: 'any', placeholder: '0' }],
    ['max_tokens', 'Most tokens', 'number', { min: 1, step: 1, placeholder: 'what fits' }],
    ['seed', 'Seed', 'number', { step: 1, placeholder: 'random' }],
    ['presence_penalty', 'Presence penalty', 'number', { min: -2, max: 2, step: 'any', placeholder: '0' }],
    ['frequency_penalty', 'Frequency penalty', 'number', { min: -2, max: 2, step: 'any', placeholder: '0' }],
    ['repeat_penalty', 'Repeat penalty', 'number', { min: 0.1, max: 100, step: 'any', placeholder: '1' }],
];

const CHOICES = [
    ['reasoning_effort', 'Reasoning', ['', 'none', 'minimal', 'low', 'medium', 'high']],
    ['service_tier', 'Priority', ['', 'flex', 'default', 'priority']],
];
const WORDS = { '': 'default', flex: 'background', default: 'normal', priority: 'interactive' };

function field(label, control, note) {
    control.id ||= `set-${control.name}`;
    return h('div', { class: 'field' }, h('label', { for: control.id }, label), control, note ?? null);
}

// The sections that the person has opened stay open, in the panel of another chat as well.
const opened = new Set(['Parameters']);

function section(title, inUse, ...children) {
    return h('details', { open: inUse || opened.has(title),
                          ontoggle: ({ target }) => (target.open ? opened.add(title) : opened.delete(title)) },
             h('summary', {}, title), ...children);
}

export class Settings {
    // onchange(settings): the person has changed something.
    constructor(settings, onchange) {
        this.settings = settings;
        this.onchange = onchange;
        this.json = {};
    }

    input(tag, name, props, ...children) {
        const kind = props.type === 'checkbox';
        const control = h(tag, { name,
            onchange: () => this.set(name, kind ? control.checked : control.value), ...props }, ...children);

        if (kind)
            control.checked = Boolean(this.settings[name]);
        else
            control.value = this.settings[name];
        return control;
    }

    set(name, value) {
        this.settings[name] = value;
        this.check();
        if (this.json[name])
            announce(this.json[name].error.textContent);
        this.onchange(this.settings);
    }

    select(name, label, words) {
        return field(label, this.input('select', name, {}, words.map((word) =>
            h('option', { value: word }, WORDS[word] ?? word))));
    }

    // A text that must be JSON.
    jsonField(name, label, placeholder, rows) {
        const error = h('p', { class: 'error', id: `${name}-error`, role: 'alert',
                               'aria-live': 'off', hidden: true });
        const area = this.input('textarea', name, {
            rows, spellcheck: 'false', class: 'json', placeholder, 'aria-describedby': error.id,
            // At once: a line that appears with the click that ends the writing would move the
            // button away from under the pointer.
            oninput: () => {
                this.settings[name] = area.value;
                this.check();
            },
        });

        this.json[name] = { area, error };
        return field(label, area, error);
    }

    checkbox(name, label) {
        const box = this.input('input', name, { type: 'checkbox', id: `set-${name}` });

        return h('label', { class: 'check' }, box, label);
    }

    // Says what is wrong with the texts that must be JSON.
    check() {
        for (const [name, read] of [['tools', readTools], ['schema', readSchema]]) {
            const { area, error } = this.json[name];
            let why = '';

            try {
                read(this.settings[name]);
            } catch (problem) {
                why = problem.message;
            }
            setText(error, why);
            show(error, Boolean(why));
            area.setAttribute('aria-invalid', String(Boolean(why)));
        }
    }

    build(onclose) {
        const element = h('form', { class: 'side-body', 'aria-label': 'Chat settings',
                                    onsubmit: (event) => event.preventDefault() },
            h('header', {}, h('h2', {}, 'Chat settings'), tool('close', 'Close settings', onclose)),
            field('System prompt', this.input('textarea', 'system', {
                rows: 4, placeholder: 'How should the model behave?' })),
            section('Parameters', false,
              h('div', { class: 'grid' },
                PARAMETERS.map(([name, label, type, props]) =>
                    field(label, this.input('input', name, { type, inputmode: 'decimal', ...props }))),
                CHOICES.map(([name, label, words]) => this.select(name, label, words))),
              field('Stop texts, one a line', this.input('textarea', 'stop', { rows: 2 }))),
            section('Token probabilities', Boolean(this.settings.logprobs),
              this.checkbox('logprobs', 'Ask for the probabilities of tokens'),
              field('Alternatives of each token', this.input('input', 'top_logprobs', {
                  type: 'number', min: 0, max: 20, step: 1 }))),
            section('Tools', Boolean(this.settings.tools),
              this.jsonField('tools', 'Tools, as JSON',
                             '[{"name": "weather", "description": "...", "parameters": {...}}]', 6),
              this.select('tool_choice', 'Use of tools', ['', 'auto', 'none', 'required'])),
            section('Answer format', Boolean(this.settings.schema_on),
              this.checkbox('schema_on', 'Answers follow this schema'),
              this.jsonField('schema', 'JSON schema',
                             '{"type": "object", "properties": {"city": {"type": "string"}}}', 8)),
            h('div', { class: 'dialog-buttons' },
              h('button', { type: 'button', class: 'button', onclick: () => this.keep() },
                'Keep as defaults')));

        this.check();
        return element;
    }

    keep() {
        const { model, ...kept } = this.settings;

        localStorage.setItem(KEPT, JSON.stringify(kept));
        toast('New chats begin with these settings');
    }
}
