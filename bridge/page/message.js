// A message of the conversation, as a person sees it.

import { copyText, h, icon, setText, show, toast, tool } from './dom.js';
import { count, when } from './format.js';
import { Markdown } from './markdown.js';
import { Calls, Reasoning, Result, cardWords, fileChips, missWords, statusWords } from './parts.js';
import { TokenView } from './tokens.js';

const PLAIN_CHARS = 10000;
const NAMES = { user: 'You', assistant: 'Assistant', tool: 'Tool result' };

// chat: the controller, which does what the buttons ask for.
export class MessageView {
    constructor(message, chat) {
        this.message = message;
        this.chat = chat;
        this.markdown = null;
        this.words = statusWords;
        this.make();
    }

    make() {
        const { message } = this, isAnswer = message.role === 'assistant';

        this.switcher = this.makeSwitcher();
        this.body = h('div', { class: isAnswer ? 'markdown body' : 'body' });
        this.reasoning = isAnswer ? new Reasoning() : null;
        this.calls = isAnswer ? new Calls((results) => this.chat.answerCalls(message, results)) : null;
        this.result = isAnswer ? new Result() : null;
        this.error = h('p', { class: 'error', role: 'alert', hidden: true });
        this.status = h('span', { class: 'status' });
        this.extra = h('div');
        this.tools = h('div', { class: 'tools', role: 'group', 'aria-label': 'Message actions' },
                       this.makeTools());
        this.element = h('article', { class: `message ${message.role}`, tabindex: '-1',
                                      'data-id': message.id },
            h('header', {}, h('span', { class: 'who' }, NAMES[message.role]),
              h('span', { class: 'what muted' }, ''),
              h('time', { datetime: new Date(message.at).toISOString() }, when(message.at)),
              this.switcher.element),
            this.reasoning?.element ?? null,
            message.files?.length ? fileChips(message.files) : null,
            this.body, this.result?.element ?? null, this.calls?.element ?? null, this.extra,
            this.error, h('footer', {}, this.tools, this.status));
        this.what = this.element.querySelector('.what');
    }

    makeSwitcher() {
        const go = (step) => this.chat.goToSibling(this.message, step);
        const back = tool('left', 'Previous branch', () => go(-1));
        const on = tool('right', 'Next branch', () => go(1));
        const place = h('span', { class: 'place' });

        return { back, on, place, element: h('div', { class: 'switcher', role: 'group', hidden: true,
                                                      'aria-label': 'Branches' }, back, place, on) };
    }

    makeTools() {
        const { message, chat } = this, isAnswer = message.role === 'assistant';
        const buttons = [tool('copy', 'Copy message', () => this.copy())];

        if (isAnswer) {
            this.again = tool('again', 'Regenerate', () => chat.regenerate(message));
            this.goOn = tool('continue', 'Continue', () => chat.continueAnswer(message));
            this.tokensButton = tool('tokens', 'Token probabilities', () => this.toggleTokens(),
                                     { 'aria-pressed': 'false' });
            this.wide = tool('columns', 'Side by side', () => chat.toggleWide(message));
            buttons.push(this.again, this.goOn, this.tokensButton, this.wide);
        }
        if (message.role !== 'tool')
            buttons.push(tool('edit', 'Edit', () => this.edit()));
        buttons.push(tool('fork', 'Branch from here', () => chat.forkAt(message)),
                     tool('delete', 'Delete message', () => chat.removeMessage(message)));
        return buttons;
    }

    async copy() {
        toast(await copyText(this.message.text) ? 'Copied' : 'The browser does not allow to copy');
    }

    // answering: the request that writes it now; null: none of this tab.
    update(answering = null) {
        const { message } = this, runs = message.state === 'running';

        this.element.classList.toggle('is-running', runs);
        this.element.setAttribute('aria-busy', String(runs));
        this.updateSwitcher();
        this.updateBody(runs);
        setText(this.status, this.words(message, answering, this.chat.hasEarlierAnswer(message)));
        this.status.title = message.stats && missWords(message.stats)
            ? `Not all of the prompt was cached: ${missWords(message.stats)}` : '';
        setText(this.what, [message.edited ? 'edited' : '', message.model ?? message.name ?? '']
            .filter(Boolean).join(' · '));
        show(this.error, Boolean(message.error));
        setText(this.error, message.error ?? '');
        if (message.role !== 'assistant')
            return;
        this.reasoning.update(message);
        this.calls.update(message, this.chat.areCallsOpen(message));
        show(this.again, !runs);
        show(this.goOn, !runs && !message.calls?.length && message.text !== '');
        show(this.wide, this.chat.canBeWide(message));
        show(this.tokensButton, Boolean(message.tokens?.length));
        this.tokens?.update();
    }

    updateBody(runs) {
        const { message } = this;

        if (message.role !== 'assistant') {
            this.showPlain(message.text);
            return;
        }
        const isResult = this.result.update(message);

        show(this.body, !isResult && !this.tokens);
        if (isResult)
            return;
        this.markdown ??= new Markdown(this.body, () => this.chat.onDrawn());
        this.markdown.set(message.text, !runs);
    }

    // The text of a person; of a long one the beginning, until they want all of it.
    showPlain(text) {
        if (this.plain === text)
            return;
        this.plain = text;
        this.body.replaceChildren(text.slice(0, PLAIN_CHARS));
        if (text.length > PLAIN_CHARS)
            this.body.append(h('button', { type: 'button', class: 'link', onclick: () =>
                this.body.replaceChildren(text) }, `Show all ${count(text.length, 'character')}`));
    }

    updateSwitcher() {
        const { siblings, at } = this.chat.placeOf(this.message);
        const { element, place, back, on } = this.switcher;

        show(element, siblings > 1);
        setText(place, `${at + 1}/${siblings}`);
        back.disabled = at === 0;
        on.disabled = at === siblings - 1;
        this.element.setAttribute('aria-label', NAMES[this.message.role] +
                                  (siblings > 1 ? `, branch ${at + 1} of ${siblings}` : ''));
    }

    toggleTokens() {
        const open = !this.tokens;

        this.tokens = open ? new TokenView(this.message, (text) =>
            this.chat.forkAtToken(this.message, text)) : null;
        this.extra.replaceChildren(...(open ? [this.tokens.element] : []));
        this.tokensButton.setAttribute('aria-pressed', String(open));
        this.update();
    }

    // A text area in place of the message.
    edit() {
        const { message, chat } = this, isAnswer = message.role === 'assistant';
        const area = h('textarea', { 'aria-label': 'Edit message', value: message.text,
                                     rows: Math.min(20, message.text.split('\n').length + 1) });
        const end = () => {
            form.remove();
            this.element.classList.remove('is-edited');
            this.tools.querySelector('button').focus();
        };
        const form = h('form', { class: 'edit', onsubmit: (event) => {
            event.preventDefault();
            end();
            chat.edit(message, area.value);
        } }, area, h('div', { class: 'dialog-buttons' },
                     h('button', { type: 'button', class: 'button', onclick: end }, 'Cancel'),
                     h('button', { type: 'submit', class: 'button primary' },
                       isAnswer ? 'Save as a branch' : 'Send as a branch')));

        area.addEventListener('keydown', (event) => {
            if (event.key === 'Escape') {
                event.stopPropagation();
                end();
            } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && !isAnswer) {
                event.preventDefault();
                form.requestSubmit();
            }
        });
        this.element.classList.add('is-edited');
        this.body.after(form);
        area.focus();
    }
}

// A small card of the same answer for a row of answers side by side.
export class AnswerCard {
    constructor(message, number, chat) {
        this.message = message;
        this.view = new MessageView(message, chat);
        this.view.words = cardWords;
        this.view.status.className = 'card-status';
        this.number = number;
        this.words = h('span');
        this.choose = h('button', { type: 'button', class: 'choose',
                                    onclick: () => chat.choose(message) }, icon('check'), this.words);
        this.element = this.view.element;
        this.element.classList.add('card');
        this.element.prepend(this.choose);
    }

    update(answering, chosen) {
        this.view.update(answering);
        this.element.classList.toggle('is-chosen', chosen);
        this.choose.setAttribute('aria-pressed', String(chosen));
        setText(this.words, chosen ? `Answer ${this.number}, used` : `Use answer ${this.number}`);
    }
}
