// Numbers, times and names, as people read them.

export function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(12));

    return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function count(number, one, many = `${one}s`) {
    return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

export function rate(number) {
    return number >= 100 || number === 0 ? Math.round(number).toLocaleString('en') : number.toFixed(1);
}

export function duration(ms) {
    if (ms < 950)
        return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
    if (ms < 59500)
        return `${(ms / 1000).toFixed(1)} s`;
    if (ms < 3600000)
        return `${Math.floor(ms / 60000)} min ${Math.floor(ms % 60000 / 1000)} s`;
    return `${Math.floor(ms / 3600000)} h ${Math.floor(ms % 3600000 / 60000)} min`;
}

export function bytes(number) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let at = 0;

    for (; number >= 1024 && at + 1 < units.length; at++)
        number /= 1024;
    return `${at && number < 100 ? number.toFixed(1) : Math.round(number)} ${units[at]}`;
}

export function large(number) {
    for (const [size, letter] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']])
        if (number >= size)
            return `${(number / size).toFixed(number / size < 100 ? 1 : 0)} ${letter}`;
    return String(number);
}

export function percent(share) {
    return `${Math.round(share * 100)} %`;
}

// "14:02", "Tue 14:02" or "2026-03-01".
export function when(at) {
    const date = new Date(at), days = (Date.now() - at) / 86400000;

    if (days < 1 && date.getDate() === new Date().getDate())
        return date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
    if (days < 6)
        return date.toLocaleDateString('en-GB', { weekday: 'short' }) + ' ' +
               date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
    return date.toISOString().slice(0, 10);
}

export function shorten(text, length) {
    const line = text.replace(/\s+/g, ' ').trim();

    return line.length > length ? `${line.slice(0, length - 1).trimEnd()}…` : line;
}
