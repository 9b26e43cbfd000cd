// The list of chats at the left: search, rename, delete, export and import.

import { $, ask, download, h, setText, show, toast, tool } from './dom.js';
import { count, when } from './format.js';
import { changeChat, exportChats, importChats, listChats, onOtherTab, removeChat, search }
    from './store.js';

let control; // { current(), open(id), closed(id) }
let drawing = 0;

function row(chat, snippet) {
    const title = chat.title || 'New chat', isCurrent = chat.id === control.current();

    return h('li', { class: isCurrent ? 'chat-row is-current' : 'chat-row' },
        h('button', { type: 'button', class: 'chat-name', 'aria-current': isCurrent ? 'page' : null,
                      onclick: () => control.open(chat.id) },
          h('span', { class: 'chat-title' }, title),
          h('span', { class: 'chat-note muted' }, snippet || when(chat.updated))),
        tool('edit', `Rename ${title}`, () => rename(chat)),
        tool('delete', `Delete ${title}`, () => remove(chat, title)));
}

export async function drawHistory() {
    const words = $('search').value.trim(), turn = ++drawing;
    const chats = await listChats(), found = words ? await search(words) : null;
    const shown = found ? chats.filter(({ id }) => found.has(id)) : chats;

    if (turn !== drawing)
        return;
    const focused = document.activeElement?.closest('.chat-row button')?.getAttribute('aria-label');

    $('chats').replaceChildren(...shown.map((chat) => row(chat, found?.get(chat.id))));
    if (focused)
        [...$('chats').querySelectorAll('button')]
            .find((button) => button.getAttribute('aria-label') === focused)?.focus();
    show($('no-chats'), !shown.length);
    setText($('no-chats'), words ? 'Nothing found.' : 'No chats yet.');
}

async function rename(chat) {
    const name = h('input', { type: 'text', id: 'new-name', value: chat.title, maxlength: 200,
                              autocomplete: 'off' });
    const fields = [h('div', { class: 'field' }, h('label', { for: 'new-name' }, 'Name'), name)];

    if (await ask({ title: 'Rename the chat', yes: 'Rename', fields }) && name.value.trim()) {
        await changeChat(chat.id, { title: name.value.trim(), titled: true });
        control.renamed(chat.id, name.value.trim());
        drawHistory();
    }
}

async function remove(chat, title) {
    if (!await ask({ title: 'Delete the chat?', text: `“${title}” and all its branches are removed.`,
                     yes: 'Delete', danger: true }))
        return;
    const copy = await exportChats([chat.id]);

    await removeChat(chat.id);
    control.closed(chat.id);
    drawHistory();
    toast('The chat is deleted', 'Undo', () => restore(copy));
}

async function restore(text) {
    try {
        toast(`${count(await importChats(text), 'chat')} imported`);
    } catch (error) {
        toast(`Not imported: ${error.message}`);
    }
    drawHistory();
}

export async function exportAll(ids) {
    const date = new Date().toISOString().slice(0, 10);

    download(`samovar-chats-${date}.json`, await exportChats(ids));
}

export function startHistory(controller) {
    let waiting;

    control = controller;
    $('search').addEventListener('input', () => {
        clearTimeout(waiting);
        waiting = setTimeout(drawHistory, 150);
    });
    $('export').addEventListener('click', () => exportAll());
    $('import').addEventListener('click', () => $('import-file').click());
    $('import-file').addEventListener('change', async ({ target }) => {
        const [file] = target.files;

        target.value = '';
        if (file)
            restore(await file.text());
    });
    onOtherTab(({ kind }) => kind !== 'message' && kind !== 'stop' && drawHistory());
    drawHistory();
}
