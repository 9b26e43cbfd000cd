// Asks samovar-http.  If the server wants a key, the person is asked for it once; it stays in the
// session storage of the tab, and is sent in a header only.

const KEY = 'samovar-key';

export class ApiError extends Error {
    constructor(status, message, param) {
        super(message);
        this.status = status;
        this.param = param;
    }
}

let askForKey = async () => null; // set by onKeyNeeded()
let asking = null;                // the promise of the question that is open
let declined = false;             // the person has given no key

export function onKeyNeeded(asker) {
    askForKey = asker;
}

// Several requests may find out at once that a key is needed: one question serves all of them.
function wantKey(used) {
    const kept = sessionStorage.getItem(KEY);

    if (kept && kept !== used)
        return Promise.resolve(kept);
    asking ??= askForKey(Boolean(used)).then((key) => {
        asking = null;
        declined = !key;
        if (key)
            sessionStorage.setItem(KEY, key);
        return key;
    });
    return asking;
}

async function failureOf(response) {
    let message = `${response.status} ${response.statusText}`, param = null;

    try {
        const body = await response.json();

        message = body.error?.message ?? body.error ?? message;
        param = body.error?.param ?? null;
    } catch {
        // The body is no JSON: the status says enough.
    }
    return new ApiError(response.status, message, param);
}

// A text that was cut within a character would be refused.
function wellFormed(name, value) {
    return typeof value === 'string' ? value.toWellFormed() : value;
}

// Resolves to the response if its status is good, and else throws an ApiError; status 0: there is
// no answer at all.  `quiet`: never asks for a key.  `polite`: not again if the person gave none.
export async function request(path, { method = 'GET', body, signal, keepalive, quiet, polite } = {}) {
    for (;;) {
        const key = sessionStorage.getItem(KEY);
        const headers = {};
        let response;

        if (body !== undefined)
            headers['content-type'] = 'application/json';
        if (key)
            headers.authorization = `Bearer ${key}`;
        try {
            response = await fetch(path, {
                method, headers, signal, keepalive, cache: 'no-store', redirect: 'error',
                credentials: 'omit',
                body: body === undefined ? undefined : JSON.stringify(body, wellFormed),
            });
        } catch (error) {
            if (error.name === 'AbortError')
                throw error;
            throw new ApiError(0, 'samovar-http does not answer');
        }
        if (response.ok)
            return response;
        if (response.status !== 401 || quiet || (polite && declined) || !await wantKey(key))
            throw await failureOf(response);
    }
}

export async function getJson(path, options) {
    return (await request(path, options)).json();
}

// The data of each server-sent event, without "[DONE]".  Gives the page its turn now and then: many
// events may come at once.
export async function* events(response) {
    const reader = response.body.getReader();
    const decoder = new TextDecoder('utf-8');
    let rest = '', since = performance.now();

    for (;;) {
        const { done, value } = await reader.read();
        const lines = (rest + (done ? decoder.decode() : decoder.decode(value, { stream: true })))
            .split('\n');

        rest = lines.pop();
        for (const line of lines) {
            if (line.startsWith('data: ') && line !== 'data: [DONE]')
                yield JSON.parse(line.slice(6));
            if (performance.now() - since > 25) {
                await new Promise((resolve) => setTimeout(resolve));
                since = performance.now();
            }
        }
        if (done)
            return;
    }
}
