// A chat: what the buttons do, and the answers that run.  conversation-view.js shows it.

import { $, announce, ask, toast } from './dom.js';
import { Answering } from './answering.js';
import { complain } from './composer.js';
import { ConversationView } from './conversation-view.js';
import { newId, shorten } from './format.js';
import { buildRequest, readSchema } from './request.js';
import { defaults } from './settings.js';
import * as store from './store.js';
import { Conversation } from './tree.js';

export class Chat {
    // onchange(): the title, the settings or the branches have changed.
    constructor({ onchange, contextOf }) {
        this.onchange = onchange;
        this.contextOf = contextOf;
        this.running = new Map(); // message id: its answering, of any chat
        this.view = new ConversationView(this);
        store.onOtherTab((news) => this.onOtherTab(news));
        this.reset();
    }

    // ---- which chat ----

    reset() {
        const now = Date.now();

        this.leave();
        this.isNew = true; // it is stored with its first message
        this.setConversation(new Conversation(
            { id: newId(), title: '', leaf: null, created: now, updated: now, settings: defaults() }, []));
    }

    async open(id) {
        const chat = await store.readChat(id);

        if (!chat)
            return false;
        const messages = await store.readMessages(id);

        this.leave();
        this.isNew = false;
        chat.settings = { ...defaults(), ...chat.settings };
        // Those that this tab is writing are objects already.
        this.setConversation(new Conversation(chat, messages.map((message) =>
            this.running.get(message.id)?.messages.find((own) => own.id === message.id) ?? message)));
        for (const message of messages)
            this.adopt(message);
        return true;
    }

    leave() {
        this.leaving?.abort();
        this.leaving = new AbortController();
    }

    setConversation(conversation) {
        this.conversation = conversation;
        this.view.reset();
        complain('');
        this.render();
        this.onchange();
    }

    get id() {
        return this.conversation.chat.id;
    }

    get settings() {
        return this.conversation.chat.settings;
    }

    // An answer that no tab writes any more goes on here.
    adopt(message) {
        if (message.state !== 'running' || this.running.has(message.id))
            return;
        const own = this.conversation.get(message.id);

        this.makeAnswering(own).takeOver(this.leaving.signal)
            .catch(() => this.running.delete(own.id));
    }

    // ---- what other tabs do ----

    async onOtherTab({ kind, chat, id }) {
        if (kind === 'stop')
            this.running.get(id)?.stop();
        if (kind === 'deleted')
            this.stopAll((message) => message.chat === chat);
        if (chat !== this.id && kind !== 'imported')
            return;
        if (kind === 'deleted') {
            toast('This chat was deleted in another tab');
            this.reset();
        } else if (kind === 'message' && !this.running.get(id)?.locked) {
            const message = await store.readMessage(id);

            if (message && message.chat === this.id) {
                const isNew = !this.conversation.get(id);

                // The conversation goes on here, too.
                if (isNew && message.parent === this.conversation.leaf && !this.isRunning)
                    this.conversation.leaf = id;
                this.conversation.add(message);
                this.adopt(message);
                this.render();
                if (isNew)
                    this.onchange();
            }
        } else if (kind === 'chat') {
            const now = await store.readChat(chat);

            if (now && chat === this.id) {
                const { leaf, settings, ...fields } = now;

                Object.assign(this.conversation.chat, fields);
                Object.assign(this.settings, settings);
                this.render();
                this.onchange();
            }
        } else if (kind === 'imported' && chat === this.id && !this.isRunning) {
            this.open(chat);
        }
    }

    // ---- for the messages that are shown ----

    onDrawn() {
        this.view.keepEnd();
    }

    render() {
        this.view.render();
    }

    // Where a message is among its siblings.
    placeOf(message) {
        const siblings = this.conversation.siblings(message.id);

        return { siblings: siblings.length, at: siblings.indexOf(message.id) };
    }

    // Has it answers beside it that are hidden behind the arrows?
    canBeWide(message) {
        return this.conversation.group(message.id).length > 1 &&
               this.conversation.children(message.id).length > 0;
    }

    // Only then may a person expect that its prompt is cached.
    hasEarlierAnswer({ parent }) {
        for (let at = this.conversation.get(parent); at; at = this.conversation.get(at.parent))
            if (at.role === 'assistant')
                return true;
        return false;
    }

    areCallsOpen(message) {
        return message.state !== 'running' && this.conversation.leaf === message.id;
    }

    // ---- what runs ----

    // The messages of the path, and those side by side with them.
    shown() {
        return [...new Set(this.conversation.path().flatMap((message) =>
            [message, ...this.conversation.group(message.id)]))];
    }

    get isRunning() {
        return this.shown().some((message) => message.state === 'running');
    }

    stop() {
        for (const { id } of this.shown()) {
            const answering = this.running.get(id);

            if (answering?.locked)
                answering.stop();
            else if (this.conversation.get(id)?.state === 'running')
                store.tellOthers({ kind: 'stop', id });
        }
    }

    stopAll(which) {
        for (const answering of this.running.values())
            if (which(answering.message))
                answering.stop();
    }

    makeAnswering(message) {
        const answering = new Answering(message, {
            onchange: () => message.chat === this.id && this.view.schedule(),
            onend: () => this.onEnd(message),
        });

        this.running.set(message.id, answering);
        return answering;
    }

    onEnd(message) {
        this.running.delete(message.id);
        if (message.chat !== this.id)
            return;
        this.render();
        this.onchange();
        if (this.isRunning) // another one, beside it
            return;
        announce(message.state === 'done'
            ? `The answer is complete${message.stats ? `: ${message.stats.output} tokens` : ''}`
            : message.state === 'stopped' ? 'The answer is stopped' : `The answer failed: ${message.error}`);
    }

    // ---- what the person does ----

    newMessage(fields, order = 0) {
        return { id: newId(), chat: this.id, at: Date.now(), order, text: '', state: 'done', ...fields };
    }

    // Stores a chat with its first message.  Throws if the database does not take it.
    async keepChat() {
        const { chat } = this.conversation;

        chat.updated = Date.now();
        if (this.isNew) {
            await store.addChat(structuredClone(chat));
            this.isNew = false;
        } else {
            await store.changeChat(chat.id, { updated: chat.updated, leaf: this.conversation.leaf });
        }
    }

    async addMessages(messages) {
        messages.forEach((message) => this.conversation.add(message));
        this.conversation.leaf = messages.at(-1).id;
        if (!this.conversation.chat.title && messages[0].role === 'user')
            this.conversation.chat.title = shorten(messages[0].text || messages[0].files[0].name, 60);
        await this.keepChat();
        await store.putMessages(messages);
    }

    // Shows why nothing was sent.  True: the request can be made.
    isRequestGood() {
        try {
            buildRequest([], this.settings);
            complain('');
            return true;
        } catch (error) {
            complain(`Not sent: ${error.message}. Look into the chat settings.`);
            return false;
        }
    }

    async send({ text, files }) {
        if (this.isRunning || !this.isRequestGood())
            return false;
        const message = this.newMessage({ role: 'user', text, files: files.length ? files : undefined,
                                          parent: this.conversation.leaf });

        try {
            await this.addMessages([message]);
        } catch (error) {
            complain(`Not stored: ${error.message}`);
            return false;
        }
        this.answer(message.id, Number(this.settings.answers) || 1);
        return true;
    }

    // Asks for new answers to the branch that ends with this message.  Each is a request of its own,
    // so that each goes on after a reload.  The daemon reads their prompt once: others wait until
    // the first one's is computed, and find it in the cache.
    answer(parent, count) {
        const group = count > 1 ? newId() : undefined;
        const schema = this.settings.schema_on ? readSchema(this.settings.schema) : undefined;
        const messages = Array.from({ length: count }, (_, order) => this.newMessage(
            { role: 'assistant', parent, group, state: 'running', schema: schema || undefined }, order));
        const path = this.conversation.path(parent);

        messages.forEach((message) => this.conversation.add(message));
        this.conversation.leaf = messages[0].id;
        this.view.follows = true;
        const answerings = messages.map((message) => this.makeAnswering(message));

        this.render();
        this.onchange();
        announce('Waiting for the answer');
        this.keepChat();
        answerings.forEach((answering, order) => answering.start(buildRequest(path, this.settings, { order })));
    }

    regenerate(message) {
        if (!this.isRunning && this.isRequestGood())
            this.answer(message.parent, 1);
    }

    continueAnswer(message) {
        if (this.isRunning || !this.isRequestGood())
            return;
        const body = buildRequest(this.conversation.path(message.id), this.settings);

        message.state = 'running';
        this.conversation.leaf = message.id;
        this.makeAnswering(message).start(body);
        this.render();
    }

    async edit(message, text) {
        const changed = this.newMessage({ role: message.role, text, parent: message.parent, edited: true,
                                          files: message.files, model: message.model });

        if (message.role === 'user' && (this.isRunning || !this.isRequestGood()))
            return;
        await this.addMessages([changed]);
        this.render();
        this.onchange();
        if (message.role === 'user')
            this.answer(changed.id, 1);
    }

    // A branch whose answer begins with this text.
    async forkAtToken(message, text) {
        if (this.isRunning || !this.isRequestGood())
            return;
        const branch = this.newMessage({ role: 'assistant', text, parent: message.parent, edited: true,
                                         schema: message.schema });

        await this.addMessages([branch]);
        this.continueAnswer(branch);
    }

    forkAt(message) {
        this.conversation.forkAt(message.id);
        this.keepLeaf();
        this.render();
        this.onchange();
        $('input').focus();
        if (message.role === 'user')
            toast('Regenerate an answer, or write another message here', 'Answer', () =>
                this.isRequestGood() && this.answer(message.id, 1));
    }

    keepLeaf() {
        if (!this.isNew)
            store.changeChat(this.id, { leaf: this.conversation.leaf });
    }

    goTo(id) {
        this.conversation.select(id);
        this.view.wide.clear();
        this.keepLeaf();
        this.render();
        this.onchange();
    }

    goToSibling(message, step) {
        const siblings = this.conversation.siblings(message.id);
        const to = siblings[siblings.indexOf(message.id) + step];

        if (!to)
            return;
        this.goTo(to);
        this.view.follows = false;
        $('messages').querySelector(`[data-id="${to}"]`)?.querySelector(
            `.switcher button[aria-label^="${step < 0 ? 'Previous' : 'Next'}"]`)?.focus();
    }

    choose(message) {
        this.conversation.select(message.id);
        this.keepLeaf();
        this.render();
        this.onchange();
        $('input').focus();
    }

    toggleWide(message) {
        this.view.toggleWide(message);
    }

    async removeMessage(message) {
        const below = this.conversation.children(message.id).length;

        if (!await ask({ title: 'Delete the message?', yes: 'Delete', danger: true,
                         text: below ? 'All that follows it is removed, too.' : 'It cannot be undone.' }))
            return;
        this.stopAll(({ id }) => id === message.id);
        const gone = this.conversation.remove(message.id);

        await store.removeMessages(this.id, gone);
        this.view.views.clear();
        this.keepLeaf();
        this.render();
        this.onchange();
    }

    async answerCalls(message, results) {
        if (this.isRunning || !this.isRequestGood())
            return;
        let parent = message.id;
        const messages = message.calls.map((call, at) => {
            const made = this.newMessage({ role: 'tool', text: results[at], call_id: call.id,
                                           name: call.name, parent }, at);

            parent = made.id;
            return made;
        });

        await this.addMessages(messages);
        this.answer(parent, 1);
    }

    async changeSettings(settings) {
        this.conversation.chat.settings = settings;
        if (!this.isNew)
            await store.changeChat(this.id, { settings: structuredClone(settings) });
        this.view.showContext();
    }
}
