// The history, in the browser's database: chats and messages, each a record of its own.
//
// Several tabs may use it.  A message is written by the tab that made it, or that holds its lock
// while it is being answered (answering.js); the fields of a chat are written one by one, and the
// last tab wins.  A tab that has written tells the others, which read the record again.  A message
// is written only while its chat exists, in one transaction: so an answer that ends after its chat
// was deleted in another tab leaves nothing behind.

import { newId } from './format.js';
import { ANSWERS, DEFAULTS } from './request.js';

const VERSION = 1;
const EXPORT_FORMAT = 'samovar-chats';

const NO_STATS = { prompt: 0, output: 0, cached: 0 };

const listeners = new Set();
const channel = new BroadcastChannel('samovar-history');
let database;

channel.onmessage = ({ data }) => listeners.forEach((listener) => listener(data));

// Calls listener({ kind, chat, id }) when another tab has written: kind is "chat", "message",
// "deleted", "imported", or "stop", which asks the tab that answers to stop.
export function onOtherTab(listener) {
    listeners.add(listener);
}

export function tellOthers(news) {
    channel.postMessage(news);
}

function promised(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

function finished(transaction) {
    return new Promise((resolve, reject) => {
        transaction.oncomplete = () => resolve();
        transaction.onabort = transaction.onerror = () => reject(transaction.error);
    });
}

export async function openStore() {
    const request = indexedDB.open('samovar', VERSION);

    request.onupgradeneeded = () => {
        const made = request.result;

        made.createObjectStore('chats', { keyPath: 'id' });
        made.createObjectStore('messages', { keyPath: 'id' }).createIndex('chat', 'chat');
    };
    database = await promised(request);
    database.onversionchange = () => database.close();
}

export function listChats() {
    return promised(database.transaction('chats').objectStore('chats').getAll())
        .then((chats) => chats.sort((a, b) => b.updated - a.updated));
}

export function readChat(id) {
    return promised(database.transaction('chats').objectStore('chats').get(id));
}

export function readMessages(chat) {
    return promised(database.transaction('messages').objectStore('messages').index('chat')
        .getAll(chat));
}

export function readMessage(id) {
    return promised(database.transaction('messages').objectStore('messages').get(id));
}

export async function addChat(chat) {
    const transaction = database.transaction('chats', 'readwrite');

    transaction.objectStore('chats').put(chat);
    await finished(transaction);
    tellOthers({ kind: 'chat', chat: chat.id });
}

// Changes some fields of a chat.  False: it does not exist any more.
export async function changeChat(id, fields) {
    const transaction = database.transaction('chats', 'readwrite');
    const chats = transaction.objectStore('chats');
    const chat = await promised(chats.get(id));

    if (!chat)
        return false;
    chats.put(Object.assign(chat, fields));
    await finished(transaction);
    tellOthers({ kind: 'chat', chat: id });
    return true;
}

// Writes messages of one chat.  False: the chat does not exist any more.
export async function putMessages(messages) {
    const transaction = database.transaction(['chats', 'messages'], 'readwrite');
    const { chat } = messages[0];
    const exists = await promised(transaction.objectStore('chats').getKey(chat));

    if (!exists)
        return false;
    for (const message of messages)
        transaction.objectStore('messages').put(message);
    await finished(transaction);
    for (const { id } of messages)
        tellOthers({ kind: 'message', chat, id });
    return true;
}

export async function removeMessages(chat, ids) {
    const transaction = database.transaction('messages', 'readwrite');

    for (const id of ids)
        transaction.objectStore('messages').delete(id);
    await finished(transaction);
    tellOthers({ kind: 'imported', chat });
}

export async function removeChat(id) {
    const transaction = database.transaction(['chats', 'messages'], 'readwrite');
    const messages = transaction.objectStore('messages');

    transaction.objectStore('chats').delete(id);
    for (const key of await promised(messages.index('chat').getAllKeys(id)))
        messages.delete(key);
    await finished(transaction);
    tellOthers({ kind: 'deleted', chat: id });
}

// The chats with these words in their title or in a message: a map from the id to a piece of text
// around the words ("" if the title has them).
export function search(words) {
    const wanted = words.toLowerCase(), found = new Map();
    const transaction = database.transaction(['chats', 'messages']);

    return new Promise((resolve, reject) => {
        transaction.objectStore('chats').openCursor().onsuccess = ({ target: { result: at } }) => {
            if (!at)
                return;
            if (at.value.title.toLowerCase().includes(wanted))
                found.set(at.value.id, '');
            at.continue();
        };
        transaction.objectStore('messages').openCursor().onsuccess = ({ target: { result: at } }) => {
            if (!at)
                return;
            const { chat, text } = at.value, from = text.toLowerCase().indexOf(wanted);

            if (from >= 0 && !found.has(chat))
                found.set(chat, text.slice(Math.max(0, from - 30), from + wanted.length + 60));
            at.continue();
        };
        transaction.oncomplete = () => resolve(found);
        transaction.onabort = () => reject(transaction.error);
    });
}

// ---- export and import ----

export async function exportChats(ids) {
    const chats = (await listChats()).filter((chat) => !ids || ids.includes(chat.id));

    for (const chat of chats)
        chat.messages = (await readMessages(chat.id)).sort((a, b) => a.at - b.at || a.order - b.order);
    return JSON.stringify({ format: EXPORT_FORMAT, version: VERSION, chats }, null, 1);
}

const TEXT = (value) => typeof value === 'string';
const NUMBER = (value) => Number.isFinite(value);
const TIME = (value) => NUMBER(value) && Math.abs(value) <= 8.64e15; // what a Date can be
const PLAIN = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);
const LIST = Array.isArray;
const BYTE = (value) => Number.isInteger(value) && value >= 0 && value < 256;

function isToken(token) {
    return TEXT(token?.t) && NUMBER(token.p) && LIST(token.top) &&
           token.top.every((each) => LIST(each) && TEXT(each[0]) && NUMBER(each[1])) &&
           (token.b === undefined || (LIST(token.b) && token.b.every(BYTE)));
}

// The fields of a message that an import keeps, with what each must be.
const FIELDS = {
    role: (value) => ['user', 'assistant', 'tool'].includes(value), text: TEXT, at: TIME,
    order: NUMBER, reasoning: TEXT, reasoned_ms: NUMBER, group: TEXT, call_id: TEXT, name: TEXT,
    model: TEXT, finish: TEXT, error: TEXT, edited: (value) => value === true, stats: PLAIN,
    schema: (value) => PLAIN(value) || value === true,
    calls: (value) => LIST(value) && value.every((call) => TEXT(call?.id) && TEXT(call.name) &&
                                                           TEXT(call.arguments)),
    files: (value) => LIST(value) && value.every((file) => TEXT(file?.name) && TEXT(file.text)),
    tokens: (value) => LIST(value) && value.every(isToken),
};

// Of a file, only what the page can show: counts and times, and why the cache was of no use.
function checkStats(stats) {
    const known = Object.entries(stats).filter(([name, value]) =>
        (name === 'cache_miss' ? TEXT(value) : NUMBER(value) && value >= 0));

    return Object.fromEntries([...Object.entries(NO_STATS), ...known]);
}

// A setting that is not what the page writes stays at its default.
function checkSettings(settings) {
    const kept = Object.entries(PLAIN(settings) ? settings : {}).filter(([name, value]) =>
        Object.hasOwn(DEFAULTS, name) &&
        (typeof value === typeof DEFAULTS[name] || (TEXT(value) && NUMBER(DEFAULTS[name]))));
    const { answers, ...others } = Object.fromEntries(kept);

    return ANSWERS.includes(answers) ? { ...others, answers } : others;
}

function checkMessage(message) {
    const kept = { text: '', at: Date.now(), order: 0 };

    for (const [name, is] of Object.entries(FIELDS))
        if (message?.[name] !== undefined && message[name] !== null) {
            if (!is(message[name]))
                throw new Error(`a message has a ${name} that is not understood`);
            kept[name] = message[name];
        }
    if (kept.stats)
        kept.stats = checkStats(kept.stats);
    if (!kept.role)
        throw new Error('a message has no role');
    // An answer that was running when it was exported is not running here.
    kept.state = message.state === 'failed' ? 'failed' : message.state === 'done' ? 'done' : 'stopped';
    return kept;
}

// Messages get new ids, so nothing that is here already is overwritten.
function checkChat(chat) {
    if (!TEXT(chat?.title) || !LIST(chat.messages))
        throw new Error('a chat has no title or no messages');
    const id = newId(), ids = new Map();
    const rows = chat.messages.map((message) => {
        const row = Object.assign(checkMessage(message), { id: newId(), chat: id });

        ids.set(message.id, row.id);
        return row;
    });
    chat.messages.forEach((message, at) => {
        rows[at].parent = ids.get(message.parent) ?? null;
    });
    checkRoots(rows);
    return {
        chat: { id, title: chat.title.slice(0, 200), titled: true, leaf: ids.get(chat.leaf) ?? null,
                created: TIME(chat.created) ? chat.created : Date.now(),
                updated: TIME(chat.updated) ? chat.updated : Date.now(),
                settings: checkSettings(chat.settings) },
        rows,
    };
}

// A file may lie: a circle of parents would never be left.
function checkRoots(rows) {
    const parents = new Map(rows.map((row) => [row.id, row.parent])), good = new Set([null]);

    for (const { id } of rows) {
        const seen = new Set();
        let at = id;

        for (; !good.has(at); at = parents.get(at)) {
            if (seen.has(at))
                throw new Error('a chat has messages in a circle');
            seen.add(at);
        }
        seen.forEach((each) => good.add(each));
    }
}

// Resolves to the number of chats; throws an Error with words if the text is no export.
export async function importChats(text) {
    let data;

    try {
        data = JSON.parse(text);
    } catch {
        throw new Error('the file is not JSON');
    }
    if (data?.format !== EXPORT_FORMAT || !LIST(data.chats))
        throw new Error('the file is not an export of this page');
    const all = data.chats.map(checkChat);
    const transaction = database.transaction(['chats', 'messages'], 'readwrite');

    for (const { chat, rows } of all) {
        transaction.objectStore('chats').put(chat);
        rows.forEach((row) => transaction.objectStore('messages').put(row));
    }
    await finished(transaction);
    tellOthers({ kind: 'imported' });
    return all.length;
}
