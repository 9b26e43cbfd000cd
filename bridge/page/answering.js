// One request and its answer: sends it, reads the stream into the message, and stores it about once
// a second together with the number of events that it is made of.  So after a reload, or in another
// tab, the stream goes on with the next event: nothing is lost, and nothing comes twice.

import { ApiError, events, getJson, request } from './api.js';
import { withLock } from './lock.js';
import { putMessages, readMessage } from './store.js';

const SAVE_MS = 1000, POLL_MS = 500;
const RESUME_MS = [0, 200, 500, 1000, 2000, 3000, 5000, 5000, 10000, 10000, 30000];

let workIsShown = true; // false: the server has no /samovar/work

// A signal that is aborted ends it.
function sleep(ms, signal) {
    return new Promise((resolve) => {
        setTimeout(resolve, ms);
        signal?.addEventListener('abort', resolve, { once: true });
    });
}

function lockOf(message) {
    return `samovar-answer-${message.id}`;
}

// null: the server does not keep the stream.
function idOf(response) {
    return response.headers.get('x-samovar-stream-id');
}

function deleteStream(id) {
    if (id)
        request(`v1/streams/${id}`, { method: 'DELETE', keepalive: true, quiet: true }).catch(() => {});
}

export class Answering {
    // message: the assistant message.  onchange(): it has changed; onend(): the last call.
    constructor(message, { onchange, onend }) {
        this.message = message;
        this.onchange = onchange;
        this.onend = onend;
        this.abort = new AbortController();
        this.stopped = false;
        this.locked = false; // this tab writes the messages
        this.begun = performance.now();
        this.first = 0;      // when the first piece came
        this.pieces = 0;     // that have come since; about as many as tokens
        this.progress = {};  // position, state, done, total: before the first piece
    }

    // Sends the request.  Never rejects: a failure becomes the state of the message.
    start(body) {
        return withLock(lockOf(this.message), null, () => this.guard(async () => {
            Object.assign(this.message, { state: 'running', error: '', finish: '', stream: null });
            await this.save();
            this.watchWork();
            await this.read(await this.send(body));
        }));
    }

    // Goes on with a stream whose tab is gone; waits while another tab reads it.
    takeOver(signal) {
        return withLock(lockOf(this.message), signal, async () => {
            const now = await readMessage(this.message.id);

            if (!now)
                return;
            Object.assign(this.message, now);
            if (now.state !== 'running')
                this.onend(this);
            else
                await this.guard(() => this.resume());
        });
    }

    stop() {
        this.stopped = true;
        this.abort.abort();
    }

    async guard(work) {
        let failure = null;

        this.locked = true;
        try {
            await work();
        } catch (error) {
            failure = error;
        }
        clearTimeout(this.saving);
        this.over = true;
        this.settle(failure);
        this.forgetStream();
        try {
            await this.save();
        } catch (error) {
            this.message.error ||= `not stored: ${error.message}`;
        }
        this.onend(this);
    }

    // Says how the answer ended.
    settle(failure) {
        const { message, stopped } = this, whole = Boolean(message.finish);

        message.state = whole ? 'done' : stopped ? 'stopped' : 'failed';
        if (!whole && !stopped)
            message.error = failure?.message ?? 'the answer was cut off';
        this.endReasoning();
    }

    // The server keeps only some streams of a person: one that is over makes room.
    forgetStream() {
        deleteStream(this.message.stream?.id);
        this.message.stream = null;
    }

    async send(body) {
        let response;

        try {
            response = await this.open(body);
        } catch (error) {
            if (error.status !== 429 || !body.stream_keep_ms)
                throw error;
            // Perhaps only the streams that can be kept are used up.
            response = await this.open({ ...body, stream_keep_ms: undefined });
        }
        const id = idOf(response);

        this.progress.position = Number(response.headers.get('x-samovar-queue-position') ?? 0);
        if (id) {
            this.message.stream = { id, seen: 0 };
            await this.save();
        }
        return response;
    }

    // Resolves to the response when its head is there.  A stream that is kept goes on without its
    // reader, and only the head tells its id: so a stop before the head lets the request go on in
    // the background until the head comes, and deletes the stream then.
    async open(body) {
        const { signal } = this.abort, connection = new AbortController();

        signal.throwIfAborted();
        const sent = request('v1/chat/completions', { method: 'POST', body, signal: connection.signal });
        const stop = new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
        let opened = !body.stream_keep_ms;

        stop.catch(() => opened && connection.abort());
        sent.then((response) => {
            opened = true;
            if (!signal.aborted)
                return;
            connection.abort();
            deleteStream(idOf(response));
        }, () => {});
        return Promise.race([sent, stop]);
    }

    // Reads the stream to its end.  If the connection is lost, it goes on with the next event.
    async read(response) {
        const { message } = this;

        for (let tries = 0; ; ) {
            const { seen } = message.stream ?? {};

            if (response)
                await this.readOnce(response);
            if (message.finish || !message.stream)
                return;
            if (message.stream.seen > seen)
                tries = 0;
            if (tries === RESUME_MS.length)
                throw new ApiError(0, 'samovar-http did not come back');
            this.progress.lost = Boolean(response) || tries > 0;
            this.onchange();
            await sleep(RESUME_MS[tries++], this.abort.signal);
            response = await this.reopen();
        }
    }

    async readOnce(response) {
        const { message } = this;

        try {
            for await (const event of events(response)) {
                if (message.stream)
                    message.stream.seen++;
                this.take(event);
            }
        } catch (error) {
            // An error that the server tells is final, and so is a stop.
            if (error instanceof ApiError || this.stopped || !message.stream)
                throw error;
        }
    }

    // null: the server is away, or its daemon is.
    async reopen() {
        const { id, seen } = this.message.stream;

        try {
            return await request(`v1/streams/${id}?from=${seen}`, { signal: this.abort.signal });
        } catch (error) {
            if (error.status === 404)
                throw new ApiError(404, 'the server does not have this answer any more');
            if (this.stopped || (error.status !== 0 && error.status !== 503))
                throw error;
            return null;
        }
    }

    async resume() {
        if (!this.message.stream)
            throw new ApiError(0, 'the page was closed before the answer was whole');
        this.watchWork();
        await this.read(null);
    }

    // ---- events ----

    take(event) {
        if (event.error)
            throw new ApiError(200, event.error.message ?? 'the server failed');
        this.progress.lost = false;
        for (const choice of event.choices ?? [])
            if (choice.index === 0)
                this.takeChoice(choice);
        if (event.usage)
            this.takeUsage(event.usage, event.timings ?? {});
        if (event.model)
            this.message.model = event.model;
        this.onchange();
        this.saving ??= setTimeout(() => this.saveSoon(), this.saveMs());
    }

    takeChoice({ delta = {}, logprobs, finish_reason }) {
        const { message } = this;

        if (delta.content || delta.reasoning_content || delta.tool_calls) {
            this.first ||= performance.now();
            this.pieces++;
        }
        if (delta.reasoning_content) {
            message.reasoning = (message.reasoning ?? '') + delta.reasoning_content;
            message.reasoning_since ??= Date.now();
        }
        if (delta.content || delta.tool_calls)
            this.endReasoning();
        message.text += delta.content ?? '';
        for (const part of delta.tool_calls ?? [])
            this.takeCall(part);
        for (const token of logprobs?.content ?? [])
            (message.tokens ??= []).push(toToken(token));
        if (finish_reason)
            message.finish = finish_reason;
    }

    takeCall(part) {
        const calls = this.message.calls ??= [];
        const call = calls[part.index] ??= { id: '', name: '', arguments: '' };

        call.id = part.id ?? call.id;
        call.name += part.function?.name ?? '';
        call.arguments += part.function?.arguments ?? '';
    }

    endReasoning() {
        const { message } = this;

        if (!message.reasoning_since)
            return;
        message.reasoned_ms = (message.reasoned_ms ?? 0) + Date.now() - message.reasoning_since;
        delete message.reasoning_since;
    }

    takeUsage(usage, timings) {
        this.message.stats = {
            prompt: usage.prompt_tokens, output: usage.completion_tokens,
            cached: usage.prompt_tokens_details?.cached_tokens ?? timings.cache_n ?? 0,
            reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
            per_second: timings.predicted_per_second ?? 0,
            prompt_ms: timings.prompt_ms ?? 0, queued_ms: timings.queued_ms ?? 0,
            cache_miss: timings.cache_miss ?? '', position: this.progress.position ?? 0,
            first_ms: this.first ? this.first - this.begun : 0,
        };
    }

    // ---- before the first piece ----

    // How far is the prompt read, or for what does the request wait?
    async watchWork() {
        while (workIsShown && !this.first && !this.over && !this.stopped) {
            await sleep(POLL_MS);
            const id = this.message.stream?.id;

            if (!id || this.first || this.over || document.hidden)
                continue;
            try {
                const { streams } = await getJson('samovar/work', { quiet: true });
                const row = streams.find((each) => each.stream_id === id);

                if (row)
                    Object.assign(this.progress, { state: row.state, waits: row.waits_for,
                                                   done: row.prompt_done, total: row.prompt });
                this.onchange();
            } catch (error) {
                workIsShown = error.status !== 404;
            }
        }
    }

    // ---- the history ----

    // A long answer takes longer to store, so it is stored more seldom.
    saveMs() {
        const { text, tokens } = this.message;

        return SAVE_MS + text.length / 200 + (tokens?.length ?? 0) / 5;
    }

    async saveSoon() {
        await this.save().catch(() => {});
        this.saving = this.over ? null : undefined;
    }

    // Text and count of events change in one turn, so what is stored of them agrees.
    async save() {
        if (!await putMessages([this.message]))
            this.stop(); // the chat was deleted
    }
}

// { t: text, p: log of its probability, top: [[text, p]], b: its bytes if they are no text }
function toToken({ token, logprob, bytes, top_logprobs }) {
    const made = { t: token, p: logprob, top: top_logprobs.map((each) => [each.token, each.logprob]) };

    if (token.includes('\uFFFD') && bytes)
        made.b = bytes;
    return made;
}
