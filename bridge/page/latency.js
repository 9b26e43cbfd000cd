// Percentiles of what happened lately, from cumulative histograms: those of now less those of ten
// seconds ago.

const SPAN = 10; // samples

export class Percentiles {
    constructor() {
        this.old = [];
    }

    // latency: as in the status; absent for users that may not see it.
    add(latency) {
        this.old.push(latency);
        if (this.old.length > SPAN)
            this.old.shift();
    }

    // In seconds; null: nothing happened, or it is not known.
    of(name, share) {
        const now = this.old.at(-1), before = this.old[0];

        if (!now?.[name] || !before?.[name])
            return null;
        const total = now[name].count - before[name].count;
        let low = 0, below = 0;

        if (total <= 0)
            return null;
        for (const [at, bound] of now.le.entries()) {
            const until = now[name].buckets[at] - before[name].buckets[at];

            if (until >= share * total)
                return low + (bound - low) * (share * total - below) / Math.max(1, until - below);
            low = bound;
            below = until;
        }
        return low;
    }
}
