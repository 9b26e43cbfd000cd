// The keyboard: the list of keys, and which of them does what.

import { h } from './dom.js';

const SHORTCUTS = [
    ['Enter', 'Send the message'], ['Shift+Enter', 'New line'], ['Esc', 'Stop the answer; close a panel'],
    ['Alt+N', 'New chat'], ['Alt+K', 'Search chats'], ['Alt+M', 'Go to the message'],
    ['Alt+R', 'Regenerate the last answer'], ['Alt+E', 'Edit your last message'],
    ['Alt+↑ / Alt+↓', 'Previous, next message'], ['Alt+← / Alt+→', 'Previous, next branch of the message'],
    ['Alt+T', 'Tree of branches'], ['Alt+S', 'Chat settings'], ['Alt+L', 'Chat or Live'],
    ['?', 'This list'],
];

export function showShortcuts() {
    const dialog = h('dialog', { class: 'dialog', 'aria-labelledby': 'shortcuts-title' },
        h('form', { method: 'dialog' }, h('h2', { id: 'shortcuts-title' }, 'Keyboard shortcuts'),
          h('dl', { class: 'shortcuts' }, SHORTCUTS.map(([keys, what]) =>
              h('div', {}, h('dt', {}, h('kbd', {}, keys)), h('dd', {}, what)))),
          h('div', { class: 'dialog-buttons' },
            h('button', { type: 'submit', class: 'button primary', autofocus: true }, 'Close'))));

    dialog.addEventListener('close', () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
}

// actions: { letter or name of an arrow: function }, all with Alt.
export function startShortcuts(actions, onEscape) {
    document.addEventListener('keydown', (event) => {
        const writes = event.target.closest?.('input, textarea, select');
        const letter = event.code.startsWith('Key') ? event.code.slice(3).toLowerCase() : event.key;
        // In a text, Alt and an arrow move the cursor.
        const moves = event.key.startsWith('Arrow') && writes?.value;

        if (document.querySelector('dialog[open]') || event.isComposing || event.ctrlKey || event.metaKey)
            return;
        if (event.key === 'Escape') {
            onEscape();
        } else if (event.key === '?' && !writes) {
            showShortcuts();
        } else if (event.altKey && actions[letter] && !moves) {
            event.preventDefault();
            actions[letter]();
        }
    });
}
