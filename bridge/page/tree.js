// A conversation: a tree of messages, and the leaf at which the person is.  A message is never
// changed into another one: an edit or a new try is a sibling.  So two tabs that write at once add
// branches, and destroy nothing.

export class Conversation {
    constructor(chat, messages) {
        this.chat = chat;
        this.nodes = new Map();
        this.below = new Map([[null, []]]); // children of each, the oldest first
        for (const message of messages.sort((a, b) => a.at - b.at || a.order - b.order))
            this.add(message);
        this.leaf = this.nodes.has(chat.leaf) ? chat.leaf : this.newestBelow(null);
    }

    add(message) {
        if (this.nodes.has(message.id)) {
            Object.assign(this.nodes.get(message.id), message);
            return;
        }
        this.nodes.set(message.id, message);
        if (!this.below.has(message.id))
            this.below.set(message.id, []);
        if (!this.below.has(message.parent))
            this.below.set(message.parent, []);
        this.below.get(message.parent).push(message.id);
    }

    get(id) {
        return this.nodes.get(id);
    }

    children(id) {
        return this.below.get(id) ?? [];
    }

    siblings(id) {
        return this.children(this.nodes.get(id).parent);
    }

    // From the first message to the leaf; to another one if it is given.
    path(to = this.leaf) {
        const path = [];

        for (let at = this.nodes.get(to); at; at = this.nodes.get(at.parent))
            path.unshift(at);
        return path;
    }

    newestBelow(id) {
        for (let next; (next = this.children(id).at(-1)); )
            id = next;
        return id;
    }

    // Goes to a message: to the end of the branch in which it is.
    select(id) {
        this.leaf = this.newestBelow(id);
    }

    // The next message of the person begins a branch here.
    forkAt(id) {
        this.leaf = id;
    }

    // The answers that one request made side by side with this one.
    group(id) {
        const { group } = this.nodes.get(id);

        return group ? this.siblings(id).map((other) => this.nodes.get(other))
            .filter((other) => other.group === group) : [];
    }

    // All messages of the subtree, removed.
    remove(id) {
        const gone = [id], parent = this.nodes.get(id).parent;

        for (let at = 0; at < gone.length; at++)
            gone.push(...this.children(gone[at]));
        this.below.set(parent, this.children(parent).filter((other) => other !== id));
        for (const each of gone) {
            this.nodes.delete(each);
            this.below.delete(each);
        }
        if (!this.nodes.has(this.leaf))
            this.leaf = this.newestBelow(parent);
        return gone;
    }
}
