// Makes elements.  The policy of the page forbids HTML from text, so this is the only way here:
// createElement and textContent.  Nothing that a model or a user writes is ever parsed as HTML.

const SVG = 'http://www.w3.org/2000/svg';

export const $ = (id) => document.getElementById(id);

// h('button', { class: 'plain', onclick: f, 'aria-label': 'Stop' }, 'text', element, null, ...)
// A property that begins with "on" is a listener; others are attributes, but for booleans.
export function h(tag, props, ...children) {
    const element = document.createElement(tag);

    for (const [name, value] of Object.entries(props ?? {})) {
        if (value === null || value === undefined || value === false)
            continue;
        if (name.startsWith('on'))
            element.addEventListener(name.slice(2), value);
        else if (name === 'value')
            element.value = value;
        else
            element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
}

export function svg(tag, props, ...children) {
    const element = document.createElementNS(SVG, tag);

    for (const [name, value] of Object.entries(props ?? {}))
        element.setAttribute(name, value);
    element.append(...children);
    return element;
}

// A picture of index.html's collection.
export function icon(name) {
    return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' },
               svg('use', { href: `#i-${name}` }));
}

// A button with a picture only; its label is its name and its tooltip.
export function tool(name, label, onclick, props) {
    return h('button', { type: 'button', class: 'tool', 'aria-label': label, title: label, onclick,
                         ...props }, icon(name));
}

export function show(element, visible) {
    element.hidden = !visible;
}

// Sets a text only if it changes, so that a frame without news costs no layout.
export function setText(element, text) {
    if (element.textContent !== text)
        element.textContent = text;
}

// Tells a screen reader, once.  The same words again are told again.
export function announce(text) {
    const region = $('announce');

    region.textContent = '';
    setTimeout(() => { region.textContent = text; }, 50);
}

// A short note at the bottom, with an optional button.
export function toast(text, action, onaction) {
    const note = h('div', { class: 'toast' }, h('span', {}, text));
    const end = () => note.remove();

    if (action)
        note.append(h('button', { type: 'button', class: 'link', onclick: () => { end(); onaction(); } },
                      action));
    $('toasts').append(note);
    setTimeout(end, action ? 8000 : 4000);
}

// A question in a dialog.  `fields` are elements to show; resolves to true for yes.
export function ask({ title, text, yes = 'OK', danger = false, fields = [] }) {
    return new Promise((resolve) => {
        const dialog = h('dialog', { class: 'dialog', 'aria-labelledby': 'ask-title' },
            h('form', { method: 'dialog' },
              h('h2', { id: 'ask-title' }, title),
              text ? h('p', {}, text) : null,
              ...fields,
              h('div', { class: 'dialog-buttons' },
                h('button', { type: 'button', class: 'button', onclick: () => dialog.close('') },
                  'Cancel'),
                h('button', { type: 'submit', class: danger ? 'button danger' : 'button primary',
                              value: 'yes' }, yes))));

        dialog.addEventListener('close', () => {
            dialog.remove();
            resolve(dialog.returnValue === 'yes');
        });
        document.body.append(dialog);
        dialog.showModal();
        (fields[0]?.querySelector?.('input') ?? dialog.querySelector('[type=submit]')).focus();
    });
}

export async function copyText(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        // No permission, or a page over plain HTTP: the old way.
        const area = h('textarea', { class: 'off-screen', 'aria-hidden': 'true' });

        area.value = text;
        document.body.append(area);
        area.select();
        const done = document.execCommand('copy');
        area.remove();
        return done;
    }
}

export function download(name, text) {
    const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    const link = h('a', { href: url, download: name });

    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}
