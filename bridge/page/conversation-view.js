// The messages of the present branch, in the page: which there are, side by side or not, and where
// the view is.

import { $, h, setText, show } from './dom.js';
import { showRunning } from './composer.js';
import { percent } from './format.js';
import { AnswerCard, MessageView } from './message.js';
import { rowWords } from './parts.js';

const AT_END = 60, TICK_MS = 200;

export class ConversationView {
    constructor(chat) {
        this.chat = chat;
        this.views = new Map();
        this.scroll = $('scroll');
        this.scroll.addEventListener('scroll', () => this.onScroll());
        new ResizeObserver(() => this.keepEnd()).observe($('messages'));
        // A control above the last part or above the view has the focus: the view must not leave it
        // for the end.
        $('messages').addEventListener('focusin', ({ target }) => {
            if (!$('messages').lastElementChild.contains(target) ||
                target.getBoundingClientRect().top < this.scroll.getBoundingClientRect().top)
                this.follows = false;
        });
        setInterval(() => this.tick(), TICK_MS);
        this.reset();
    }

    reset() {
        this.views.clear();
        this.wide = new Set(); // groups that are shown side by side though the conversation went on
        this.follows = true;   // the end stays in sight
    }

    // The parts of the page: a message, or several answers side by side.
    parts() {
        return this.chat.conversation.path().map((message, at, path) => {
            const group = this.chat.conversation.group(message.id);
            const wide = group.length > 1 && (at === path.length - 1 || this.wide.has(message.group));

            // Answers that another tab makes come one by one, so their number is a part of the key.
            return wide ? { key: `group-${message.group}-${group.length}`, message, group }
                        : { key: message.id, message };
        });
    }

    render() {
        const { leaf, chat: { title } } = this.chat.conversation;
        const parts = this.parts(), box = $('messages');
        const elements = parts.map(({ key, message, group }) => {
            const view = this.views.get(key) ?? this.makeView(key, message, group);

            view.update(message);
            return view.element;
        });

        elements.forEach((element, at) => {
            if (box.children[at] !== element)
                box.insertBefore(element, box.children[at] ?? null);
        });
        while (box.children.length > elements.length)
            box.lastChild.remove();
        box.classList.toggle('has-row', parts.some(({ group }) => group));
        show($('welcome'), !parts.length);
        show(box, parts.length > 0);
        $('tree-button').disabled = $('export-chat').disabled = !parts.length;
        setText($('chat-title'), title || 'New chat');
        document.title = title ? `${title} – samovar` : 'samovar';
        show($('branch-note'), leaf !== null && this.chat.conversation.children(leaf).length > 0);
        this.showContext();
        showRunning(this.chat.isRunning);
        this.keepEnd();
    }

    makeView(key, message, group) {
        const view = group ? this.makeRow(group) : this.makeSingle(message);

        this.views.set(key, view);
        return view;
    }

    makeSingle(message) {
        const view = new MessageView(message, this.chat);

        return { element: view.element, view,
                 update: () => view.update(this.chat.running.get(message.id)) };
    }

    makeRow(group) {
        const cards = group.map((message, at) => new AnswerCard(message, at + 1, this.chat));
        const status = h('p', { class: 'status' });
        const element = h('div', { class: 'answers-row', role: 'group',
                                   'aria-label': `${group.length} answers side by side` },
            h('div', { class: 'row', tabindex: '0' }, cards.map((card) => card.element)), status);
        const answering = ({ id }) => this.chat.running.get(id);

        return { element, update: (chosen) => {
            cards.forEach((card) => card.update(answering(card.message), card.message.id === chosen.id));
            setText(status, rowWords(group, answering, this.chat.hasEarlierAnswer(chosen)));
        } };
    }

    // Messages that are being written change their status with the time, too.
    tick() {
        if (this.chat.isRunning && !document.hidden)
            this.schedule();
    }

    schedule() {
        this.frame ??= requestAnimationFrame(() => {
            this.frame = null;
            for (const { key, message, group } of this.parts())
                if ((group ?? [message]).some(({ state }) => state === 'running'))
                    this.views.get(key)?.update(message);
        });
    }

    onScroll() {
        const { scrollTop, scrollHeight, clientHeight } = this.scroll;

        this.follows = scrollHeight - scrollTop - clientHeight < AT_END;
        show($('to-end'), !this.follows && scrollHeight > clientHeight);
    }

    keepEnd() {
        if (this.follows)
            this.scroll.scrollTop = this.scroll.scrollHeight;
    }

    toEnd() {
        this.follows = true;
        this.keepEnd();
    }

    showContext() {
        const last = this.chat.conversation.path().findLast(({ stats }) => stats);
        const context = this.chat.contextOf(this.chat.settings.model);
        const { prompt = 0, output = 0, answers = 1 } = last?.stats ?? {};
        const used = prompt + Math.ceil(output / (answers || 1));

        show($('context'), Boolean(used && context));
        if (used && context) {
            $('context-meter').value = Math.min(1, used / context);
            setText($('context-text'),
                    `Context ${percent(used / context)} of ${context.toLocaleString('en')}`);
        }
    }

    toggleWide(message) {
        if (!this.wide.delete(message.group))
            this.wide.add(message.group);
        this.follows = false;
        this.render();
        this.showMessage(message.id);
    }

    showMessage(id) {
        const element = $('messages').querySelector(`[data-id="${id}"]`);

        this.follows = false;
        element?.scrollIntoView({ block: 'center' });
        element?.focus({ preventScroll: true });
    }
}
