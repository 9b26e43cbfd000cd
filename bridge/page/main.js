// Starts the page: tabs, theme, shortcuts, the key, and whether the daemon is there.

import { $, announce, ask, h, setText, show, toast } from './dom.js';
import { getJson, onKeyNeeded } from './api.js';
import { buildTree } from './branches.js';
import { Chat } from './chat.js';
import { setComposer, startComposer } from './composer.js';
import { bytes, large, percent } from './format.js';
import { drawHistory, exportAll, startHistory } from './history.js';
import { hideLive, showLive } from './live.js';
import { Settings } from './settings.js';
import { showShortcuts, startShortcuts } from './shortcuts.js';
import { openStore } from './store.js';

const HEALTH_MS = 5000, AWAY_MS = 1500;
const CURRENT = 'samovar-chat', THEME = 'samovar-theme';
const EXAMPLES = ['What is two plus three?', 'What is the opposite of cold?',
                  'Tell me a story about a fox.', 'Explain in three points what a paged KV cache is.'];

let models = [], chat = null, sideKind = '';

// ---- key ----

onKeyNeeded(async (again) => {
    const input = h('input', { type: 'password', id: 'key', autocomplete: 'off', spellcheck: 'false' });
    const field = h('div', { class: 'field' }, h('label', { for: 'key' }, 'API key'), input);
    const yes = await ask({
        title: again ? 'The key is not known here' : 'This server wants a key',
        fields: [field], yes: 'Use key',
        text: 'It stays in this tab until you close it, and is sent to this server only.' });

    return yes ? input.value.trim() : null;
});

// ---- the daemon ----

let healthTimer, wasOk = null;

async function checkHealth() {
    let state = 'gone', words = 'No connection', why = 'samovar-http does not answer.';

    clearTimeout(healthTimer);
    try {
        const response = await fetch('health', { cache: 'no-store', credentials: 'omit' });
        const health = await response.json();

        state = health.status;
        const loaded = percent(health.loaded ?? 0);

        words = { ok: 'Ready', loading: `Loading ${loaded}` }[state] ?? 'Daemon away';
        why = state === 'loading' ? `The daemon loads the model: ${loaded}.`
                                  : `The daemon is away: ${health.message ?? 'unknown'}.`;
    } catch {
        // No answer, or none of ours.
    }
    const ok = state === 'ok';

    $('health').dataset.state = state;
    setText($('health-text'), words);
    setText($('banner'), ok ? '' : `${why} This page tries again by itself.`);
    show($('banner'), !ok);
    if (ok && wasOk === false) {
        announce('The daemon is back');
        toast('The daemon is back');
    }
    if (ok && (wasOk === false || !models.length))
        await readModels();
    wasOk = ok;
    healthTimer = setTimeout(checkHealth, document.hidden ? 30000 : ok ? HEALTH_MS : AWAY_MS);
}

async function readModels() {
    try {
        models = (await getJson('v1/models', { polite: true })).data;
    } catch {
        return; // the next look at the health tries again
    }
    $('model').replaceChildren(...models.map(({ id }) => h('option', { value: id }, id)));
    showModel();
    chat?.view.showContext();
}

const modelOf = (name) => models.find(({ id }) => id === name) ?? models[0];

function showModel() {
    const model = modelOf(chat?.settings.model);

    if (!model)
        return;
    $('model').value = model.id;
    const { n_params: parameters, size, quantization } = model.meta ?? {};

    setText($('welcome-model'), [model.id, parameters ? `${large(parameters)} parameters` : '',
                                 quantization ?? '', size ? bytes(size) : '',
                                 `context of ${model.max_model_len?.toLocaleString('en')} tokens`]
        .filter(Boolean).join(' · '));
}

// ---- tabs, theme, panels ----

function selectTab(name, focus) {
    for (const each of ['chat', 'live']) {
        const selected = each === name;

        $(`tab-${each}`).setAttribute('aria-selected', String(selected));
        $(`tab-${each}`).tabIndex = selected ? 0 : -1;
        show($(`panel-${each}`), selected);
    }
    if (focus)
        $(`tab-${name}`).focus();
    location.replace(name === 'live' ? '#live' : '#chat');
    if (name === 'live')
        showLive();
    else
        hideLive();
}

const THEMES = { auto: 'automatic', light: 'light', dark: 'dark' };

function setTheme(theme) {
    if (theme === 'auto')
        delete document.documentElement.dataset.theme;
    else
        document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
    $('theme-button').setAttribute('aria-label', `Theme: ${THEMES[theme]}`);
    $('theme-button').title = `Theme: ${THEMES[theme]}`;
}

function nextTheme() {
    const names = Object.keys(THEMES), now = localStorage.getItem(THEME) ?? 'auto';

    setTheme(names[(names.indexOf(now) + 1) % names.length]);
    announce($('theme-button').title);
}

// The history and the panel at the side.  In a narrow window they are drawers: one of them at a
// time lies over the conversation.
const NARROW = matchMedia('(max-width: 860px)');
const isNarrow = () => NARROW.matches;
const isHistoryOpen = () => !document.body.classList.contains('no-history');
const hasFocus = (element) => element.contains(document.activeElement);
// Whether the focus is lost when this panel closes.
const losesFocus = (panel) => hasFocus(panel) || document.activeElement === document.body;

// What a drawer covers takes neither the focus nor clicks.
function coverTalk() {
    $('talk').inert = isNarrow() && (isHistoryOpen() || Boolean(sideKind));
}

// focus: the person has asked for it, so the focus goes into a drawer, or back to its button.
function showHistory(open, focus = false) {
    document.body.classList.toggle('no-history', !open);
    $('history-button').setAttribute('aria-expanded', String(open));
    if (open && isNarrow())
        showSide('');
    coverTalk();
    if (focus && open && isNarrow())
        $('new-chat').focus();
    else if (focus && !open && losesFocus($('history')))
        $('history-button').focus();
}

// focus: the same for the panel at the side, which takes the focus at any width.
function showSide(kind, focus = false) {
    const buttons = { settings: $('settings-button'), tree: $('tree-button') }, last = sideKind;
    const returns = focus && !kind && losesFocus($('side'));
    const close = () => showSide('', true);

    sideKind = kind;
    for (const [name, button] of Object.entries(buttons))
        button.setAttribute('aria-expanded', String(name === kind));
    show($('side'), Boolean(kind));
    if (kind === 'settings')
        $('side').replaceChildren(new Settings(chat.settings, (settings) => chat.changeSettings(settings))
            .build(close));
    else if (kind === 'tree')
        drawTree(close);
    else
        $('side').replaceChildren();
    if (kind && isNarrow())
        showHistory(false);
    coverTalk();
    if (focus && kind)
        focusSide();
    else if (returns)
        buttons[last]?.focus();
}

function focusSide() {
    ($('side').querySelector('textarea, [role="treeitem"][tabindex="0"]') ??
     $('side').querySelector('button'))?.focus();
}

function toggleSide(kind) {
    showSide(sideKind === kind ? '' : kind, true);
}

// The panel that Escape closes, or a click beside a drawer.
function closePanel() {
    if (sideKind)
        showSide('', true);
    else if (isNarrow())
        showHistory(false, true);
}

// What is inert is no target, so a click beside a drawer is one on the tab panel that has both.  So
// is a press within the drawer that ends beside it, which must not close it.
function wireShade(panel) {
    let pressed = null;

    panel.addEventListener('pointerdown', ({ target }) => { pressed = target; });
    panel.addEventListener('click', ({ target }) =>
        $('talk').inert && target === panel && pressed === panel && closePanel());
}

// The person goes on in the conversation, so no drawer may lie over it.
function uncoverTalk() {
    if (isNarrow()) {
        showHistory(false);
        showSide('');
    }
}

// As at the start, the history is open where there is room for it.
function onWidth() {
    const covers = isNarrow() && sideKind && hasFocus($('talk'));

    showHistory(!isNarrow(), hasFocus($('history')));
    if (covers)
        focusSide();
}

function drawTree(close) {
    const focused = $('side').contains(document.activeElement) && document.activeElement.dataset.id;

    $('side').replaceChildren(buildTree(chat.conversation, (id) => {
        chat.goTo(id);
        if (isNarrow())
            close();
        chat.view.showMessage(id);
    }, close));
    if (focused)
        $('side').querySelector(`[data-id="${focused}"]`)?.focus();
}

// ---- what the keys do ----

function stepMessage(step) {
    const all = [...$('messages').querySelectorAll('.message')];
    const at = all.indexOf(document.activeElement.closest('.message'));
    const next = all[at < 0 ? (step < 0 ? all.length - 1 : 0) : at + step];

    next?.focus();
    next?.scrollIntoView({ block: 'nearest' });
}

function stepBranch(step) {
    const id = document.activeElement.closest('.message')?.dataset.id ?? chat.conversation.leaf;

    if (id && chat.conversation.get(id))
        chat.goToSibling(chat.conversation.get(id), step);
}

function editLast() {
    const { id } = last('user') ?? {};

    $('messages').querySelector(`[data-id="${id}"] [aria-label="Edit"]`)?.click();
}

const last = (role) => chat.conversation.path().findLast((message) => message.role === role);

const inTalk = (action) => () => { uncoverTalk(); action(); };

const actions = {
    n: () => newChat(), k: () => { showHistory(true); $('search').focus(); },
    m: inTalk(() => $('input').focus()),
    r: inTalk(() => last('assistant') && chat.regenerate(last('assistant'))),
    e: inTalk(() => editLast()),
    t: () => $('tree-button').disabled || toggleSide('tree'),
    s: () => toggleSide('settings'),
    l: () => selectTab($('panel-live').hidden ? 'live' : 'chat', true),
    ArrowUp: inTalk(() => stepMessage(-1)), ArrowDown: inTalk(() => stepMessage(1)),
    ArrowLeft: inTalk(() => stepBranch(-1)), ArrowRight: inTalk(() => stepBranch(1)),
};

// A drawer is closed before what it covers is stopped.
function onEscape() {
    if (chat.isRunning && !$('talk').inert)
        chat.stop();
    else
        closePanel();
}

// ---- chats ----

function onChatChange() {
    sessionStorage.setItem(CURRENT, chat.isNew ? '' : chat.id);
    $('answers').value = String(chat.settings.answers);
    showModel();
    drawHistory();
    if (sideKind === 'tree' || (sideKind === 'settings' && !$('side').contains(document.activeElement)))
        showSide(sideKind);
}

function newChat() {
    chat.reset();
    uncoverTalk();
    if (sideKind === 'settings')
        showSide('settings');
    selectTab('chat');
    $('input').focus();
}

async function openChat(id) {
    if (!await chat.open(id))
        return newChat();
    uncoverTalk();
    if (sideKind === 'settings')
        showSide('settings');
    chat.view.toEnd();
    $('input').focus();
}

function wire() {
    $('tab-chat').addEventListener('click', () => selectTab('chat'));
    $('tab-live').addEventListener('click', () => selectTab('live'));
    for (const name of ['chat', 'live'])
        $(`tab-${name}`).addEventListener('keydown', (event) => {
            if (['ArrowLeft', 'ArrowRight'].includes(event.key) && !event.altKey)
                selectTab(name === 'chat' ? 'live' : 'chat', true);
        });
    $('theme-button').addEventListener('click', nextTheme);
    $('help-button').addEventListener('click', showShortcuts);
    $('history-button').addEventListener('click', () => showHistory(!isHistoryOpen(), true));
    NARROW.addEventListener('change', onWidth);
    wireShade($('panel-chat'));
    $('skip').addEventListener('click', uncoverTalk);
    $('new-chat').addEventListener('click', newChat);
    $('settings-button').addEventListener('click', () => toggleSide('settings'));
    $('tree-button').addEventListener('click', () => toggleSide('tree'));
    $('export-chat').addEventListener('click', () =>
        chat.isNew ? toast('There is nothing to export yet') : exportAll([chat.id]));
    $('to-end').addEventListener('click', () => chat.view.toEnd());
    $('branch-end').addEventListener('click', () => chat.goTo(chat.conversation.leaf));
    $('model').addEventListener('change', () => {
        chat.settings.model = $('model').value;
        chat.changeSettings(chat.settings);
    });
    $('answers').addEventListener('change', () => {
        chat.settings.answers = Number($('answers').value);
        chat.changeSettings(chat.settings);
    });
    $('examples').append(...EXAMPLES.map((text) =>
        h('button', { type: 'button', class: 'button', onclick: () => setComposer(text) }, text)));
    startShortcuts(actions, onEscape);
    document.addEventListener('visibilitychange', () => document.hidden || checkHealth());
}

async function start() {
    setTheme(localStorage.getItem(THEME) ?? 'auto');
    try {
        await openStore();
    } catch (error) {
        setText($('banner'), `The browser gives this page no database for its history: ${error.message}`);
        show($('banner'), true);
        return;
    }
    chat = new Chat({ onchange: () => chat && onChatChange(),
                      contextOf: (name) => modelOf(name)?.max_model_len ?? 0 });
    wire();
    startComposer({ onsend: (message) => chat.send(message), onstop: () => chat.stop() });
    startHistory({
        current: () => chat.id, open: openChat,
        closed: (id) => id === chat.id && newChat(),
        renamed: (id, title) => {
            if (id !== chat.id)
                return;
            chat.conversation.chat.title = title;
            chat.render();
        },
    });
    showHistory(!isNarrow());
    if (location.hash === '#live')
        selectTab('live');
    checkHealth();
    if (sessionStorage.getItem(CURRENT))
        await chat.open(sessionStorage.getItem(CURRENT));
    if (!isNarrow())
        $('input').focus();
}

start();
