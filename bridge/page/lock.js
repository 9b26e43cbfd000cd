// One tab at a time: runs work() while no other tab holds the same name.  The browser has locks for
// that, but only where the page counts as secure (over HTTPS, or from this machine).  Elsewhere the
// tabs ask each other.

const ANSWER_MS = 400, TRY_AGAIN_MS = 2000;
const held = new Set();
let channel = null;

function tabs() {
    if (!channel) {
        channel = new BroadcastChannel('samovar-locks');
        channel.addEventListener('message', ({ data }) => {
            if (data.ask && held.has(data.ask))
                channel.postMessage({ held: data.ask });
        });
    }
    return channel;
}

function isHeldElsewhere(name) {
    return new Promise((resolve) => {
        const end = (answer) => {
            clearTimeout(timer);
            tabs().removeEventListener('message', hear);
            resolve(answer);
        };
        const hear = ({ data }) => data.held === name && end(true);
        const timer = setTimeout(end, ANSWER_MS, false);

        tabs().addEventListener('message', hear);
        tabs().postMessage({ ask: name });
    });
}

async function withTabs(name, signal, work) {
    while (held.has(name) || await isHeldElsewhere(name)) {
        await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
        signal?.throwIfAborted();
    }
    held.add(name);
    try {
        return await work();
    } finally {
        held.delete(name);
    }
}

// Rejects with AbortError if the signal comes before the lock.
export function withLock(name, signal, work) {
    if (navigator.locks)
        return navigator.locks.request(name, signal ? { signal } : {}, work);
    return withTabs(name, signal, work);
}
