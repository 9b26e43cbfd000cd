// Where the person writes: the text, the attached files, and how many answers are wanted.

import { $, announce, h, icon, setText, show } from './dom.js';
import { bytes } from './format.js';

const FILE_BYTES = 1 << 20, ROWS = 12;

const input = $('input');
let files = [];

function grow() {
    input.rows = Math.min(ROWS, Math.max(1, input.value.split('\n').length));
}

export function complain(text) {
    setText($('composer-error'), text);
    show($('composer-error'), Boolean(text));
}

function drawFiles() {
    $('attached').replaceChildren(...files.map((file, at) => h('li', {},
        h('span', {}, `${file.name} (${bytes(file.text.length)})`),
        h('button', { type: 'button', class: 'tool', 'aria-label': `Remove ${file.name}`,
                      onclick: () => { files.splice(at, 1); drawFiles(); input.focus(); } },
          icon('close')))));
}

async function readFile(file) {
    if (file.size > FILE_BYTES)
        throw new Error(`${file.name} has ${bytes(file.size)}; a file may have ${bytes(FILE_BYTES)}`);
    const data = await file.arrayBuffer();

    try {
        const text = new TextDecoder('utf-8', { fatal: true }).decode(data);

        if (text.includes('\0'))
            throw new TypeError();
        return { name: file.name, text };
    } catch {
        throw new Error(`${file.name} is not a text file in UTF-8`);
    }
}

async function attach(list) {
    complain('');
    for (const file of list)
        try {
            files.push(await readFile(file));
            announce(`${file.name} is attached`);
        } catch (error) {
            complain(error.message);
        }
    drawFiles();
    input.focus();
}

// onsend({ text, files }) returns false if it does not take the message.
export function startComposer({ onsend, onstop }) {
    $('composer').addEventListener('submit', async (event) => {
        event.preventDefault();
        const message = { text: input.value, files };

        if (!$('stop').hidden || (!message.text.trim() && !files.length))
            return;
        complain('');
        if (await onsend(message) === false)
            return;
        input.value = '';
        files = [];
        drawFiles();
        grow();
    });
    input.addEventListener('input', grow);
    input.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            $('composer').requestSubmit();
        }
    });
    input.addEventListener('paste', (event) => {
        if (event.clipboardData.files.length) {
            event.preventDefault();
            attach([...event.clipboardData.files]);
        }
    });
    $('attach').addEventListener('click', () => $('files').click());
    $('files').addEventListener('change', ({ target }) => {
        attach([...target.files]);
        target.value = '';
    });
    $('panel-chat').addEventListener('dragover', (event) => event.preventDefault());
    $('panel-chat').addEventListener('drop', (event) => {
        event.preventDefault();
        attach([...event.dataTransfer.files]);
    });
    $('stop').addEventListener('click', onstop);
}

export function setComposer(text) {
    input.value = text;
    grow();
    input.focus();
}

export function showRunning(runs) {
    const hadFocus = document.activeElement === (runs ? $('send') : $('stop'));

    show($('stop'), runs);
    show($('send'), !runs);
    if (hadFocus)
        $(runs ? 'stop' : 'send').focus();
}
