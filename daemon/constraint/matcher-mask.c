/* Which tokens, and which bytes, may come next. */
#include <string.h>

#include "daemon/constraint/matcher-state.h"

static void set_bit(uint32_t *bits, uint32_t token)
{
        bits[token >> 5] |= 1u << (token & 31);
}

static void set_token(const struct token_trie *trie, uint32_t *bits, uint32_t token)
{
        for (; token != TOKEN_TRIE_NONE; token = trie->same[token])
                set_bit(bits, token);
}

/*
 * A place of the walk.  It is *quiet* if nothing has ended there and few lexemes are being read:
 * then states of the lexer say all, and a step is a look into a table for each.  Other places are
 * positions of the matcher.
 */
#define QUIET_MAX 2u /* threads: a lexeme that may be longer, and what follows where it ends */
struct place {
        struct thread threads[QUIET_MAX];
        uint32_t position; /* of this place, or of the last one before it that is not quiet */
        uint8_t count;     /* of threads */
        bool quiet, kept;  /* kept: there is no position before it but those that a walk keeps */
        bool inside;       /* the only lexeme that was read at the beginning has not ended */
};

/*
 * Most tokens that end a lexeme end it in the same way: `at` is the same, with the states behind
 * the last byte, and so is the quiet place `next`.  The row between them is made once, and kept
 * below all other positions until the mask is complete.
 */
struct end {
        struct place at, next;
};

#define ENDS_KEPT      32u
#define INSIDE_VISITED 1000u /* nodes: a state that takes less work is not remembered */
struct walk {
        struct matcher *matcher;
        uint32_t *bits;
        struct place first;
        uint32_t top;                      /* the last position that is kept */
        uint32_t items_max, registers_max; /* when no more are kept */
        struct end ends[ENDS_KEPT];
        unsigned end_count;
        uint32_t visited;      /* nodes */
        struct inside *inside; /* is written by this walk; NULL: none */
};

/* A quiet place with the threads of the last position; false: there are too many. */
static bool quiet_place(const struct matcher *matcher, struct place *place)
{
        uint32_t last = matcher->position_count - 1;
        uint32_t first = matcher_first_thread(matcher, last);
        uint32_t count = matcher->positions[last].threads_end - first;

        if (count > QUIET_MAX)
                return false;
        place->quiet = true;
        place->count = count;
        for (uint32_t i = 0; i < count; i++)
                place->threads[i] = matcher->threads[first + i];
        return true;
}

static struct place last_place(const struct matcher *matcher, uint32_t before)
{
        uint32_t last = matcher->position_count - 1;
        struct place place = { .position = before };

        if (matcher->positions[last].row != ROW_NONE || !quiet_place(matcher, &place))
                place.position = last;
        return place;
}

/* All walks of a mask begin here.  Space stays for what is not kept. */
static void walk_init(struct walk *walk, struct matcher *matcher, uint32_t *bits)
{
        walk->matcher = matcher;
        walk->bits = bits;
        walk->top = matcher->position_count - 1;
        walk->end_count = 0;
        walk->items_max = matcher->item_count + matcher->limits.items / 16;
        walk->registers_max = matcher->register_count + matcher->registers_max / 16;
        walk->first = (struct place){ .position = walk->top };
        walk->first.kept = quiet_place(matcher, &walk->first);
        walk->first.inside = walk->first.kept && walk->first.count == 1;
        walk->visited = 0;
        walk->inside = NULL;
}

static bool same_threads(const struct place *one, const struct place *other)
{
        return one->count == other->count &&
               memcmp(one->threads, other->threads, one->count * sizeof(*one->threads)) == 0;
}

static const struct end *find_end(const struct walk *walk, const struct place *at)
{
        for (unsigned i = 0; i < walk->end_count; i++)
                if (same_threads(&walk->ends[i].at, at))
                        return &walk->ends[i];
        return NULL;
}

/* Keeps the last position, where lexemes have ended, if what follows it is quiet. */
static const struct end *keep_end(struct walk *walk, const struct place *at)
{
        const struct matcher *matcher = walk->matcher;
        struct end *end = &walk->ends[walk->end_count];

        if (walk->end_count == ENDS_KEPT || matcher->item_count > walk->items_max ||
            matcher->register_count > walk->registers_max)
                return NULL;
        *end = (struct end){ .at = *at, .next = { .kept = true } };
        if (!quiet_place(matcher, &end->next))
                return NULL;
        walk->top = matcher->position_count - 1;
        walk->end_count++;
        return end;
}

/* A step from a quiet place by which a lexeme ends.  `to` has the states behind the byte. */
static enum push step_end(struct walk *walk, const struct place *from, uint8_t byte,
                          struct place *to)
{
        struct matcher *matcher = walk->matcher;
        const struct end *end = from->kept ? find_end(walk, to) : NULL;
        uint32_t before = from->kept ? walk->top : from->position;
        struct place at = *to;
        enum push pushed;

        if (!end) {
                matcher_cut(matcher, before);
                if (matcher_resume(matcher, from->threads, from->count) == PUSH_SPENT)
                        return PUSH_SPENT;
                pushed = matcher_push(matcher, byte);
                if (pushed != PUSH_FINE)
                        return pushed;
                *to = last_place(matcher, before);
                end = from->kept ? keep_end(walk, &at) : NULL;
        }
        if (end)
                *to = end->next;
        return PUSH_FINE;
}

static bool ends_lexeme(const struct lexer *lexer, uint32_t state)
{
        return state == LEXER_SPENT || lexer->states[state].accept_count > 0;
}

static enum push step_quiet(struct walk *walk, const struct place *from, uint8_t byte,
                            struct place *to)
{
        struct lexer *lexer = &walk->matcher->grammar->lexer;
        bool ends = false;

        *to = *from;
        to->count = 0;
        for (unsigned i = 0; i < from->count; i++) {
                uint32_t state = lexer_next(lexer, from->threads[i].state, byte);

                if (state == LEXER_DEAD)
                        continue;
                ends |= ends_lexeme(lexer, state);
                to->threads[to->count++] = (struct thread){ from->threads[i].row, state };
        }
        if (ends)
                return step_end(walk, from, byte, to);
        return to->count ? PUSH_FINE : PUSH_DEAD;
}

/* The same for one thread: nearly all steps of a walk. */
static inline enum push step_single(struct walk *walk, const struct place *from, uint8_t byte,
                                    struct place *to)
{
        struct lexer *lexer = &walk->matcher->grammar->lexer;
        uint32_t state = lexer_next(lexer, from->threads[0].state, byte);

        if (state == LEXER_DEAD)
                return PUSH_DEAD;
        *to = *from;
        to->threads[0].state = state;
        return ends_lexeme(lexer, state) ? step_end(walk, from, byte, to) : PUSH_FINE;
}

/* One step by a table, or by the matcher where a lexeme ends or many are read. */
static enum push step(struct walk *walk, const struct place *from, uint8_t byte, struct place *to)
{
        enum push pushed;

        if (from->quiet)
                return from->count == 1 ? step_single(walk, from, byte, to)
                                        : step_quiet(walk, from, byte, to);
        matcher_cut(walk->matcher, from->position);
        pushed = matcher_push(walk->matcher, byte);
        if (pushed == PUSH_FINE)
                *to = last_place(walk->matcher, from->position);
        return pushed;
}

/* Whether the only lexeme may end by this byte. */
static bool is_exit(struct walk *walk, const struct place *from, uint8_t byte)
{
        struct lexer *lexer = &walk->matcher->grammar->lexer;
        uint32_t state =
                from->inside ? lexer_next(lexer, from->threads[0].state, byte) : LEXER_DEAD;

        return state != LEXER_DEAD && ends_lexeme(lexer, state);
}

/* Reads the texts of some nodes of a slice, each common beginning once; `first` is before them. */
static enum push walk_nodes(struct walk *walk, enum token_slice which, uint32_t begin, uint32_t end,
                            const struct place *first)
{
        const struct token_trie *trie = walk->matcher->trie;
        const struct trie_node *nodes = trie->slices[which].nodes;
        struct place path[TOKEN_TRIE_DEPTH + 1];
        enum push pushed = PUSH_FINE;

        if (begin < end)
                path[nodes[begin].depth - 1] = *first;
        for (uint32_t i = begin; i < end && pushed != PUSH_SPENT; walk->visited++) {
                const struct trie_node *node = &nodes[i];
                const struct place *from = &path[node->depth - 1];

                if (walk->inside && is_exit(walk, from, node->byte))
                        inside_add_exit(walk->inside,
                                        (struct inside_exit){ i, which, from->threads[0].state });
                pushed = step(walk, from, node->byte, &path[node->depth]);
                if (pushed == PUSH_DEAD) {
                        i += node->subtree;
                        continue;
                }
                if (node->token != TOKEN_TRIE_NONE) {
                        set_token(trie, walk->bits, node->token);
                        if (walk->inside && path[node->depth].inside)
                                set_token(trie, walk->inside->bits, node->token);
                }
                i++;
        }
        return pushed;
}

/* The tokens that stay inside of the lexeme are known: walks what is behind the exits. */
static enum push walk_exits(struct walk *walk, const struct inside *inside)
{
        struct place place = walk->first;

        for (uint32_t i = 0; i < inside->exit_count; i++) {
                const struct inside_exit *exit = &inside->exits[i];
                const struct trie_node *node =
                        &walk->matcher->trie->slices[exit->slice].nodes[exit->node];

                place.threads[0].state = exit->state;
                if (walk_nodes(walk, exit->slice, exit->node, exit->node + node->subtree, &place) ==
                    PUSH_SPENT)
                        return PUSH_SPENT;
        }
        return PUSH_FINE;
}

/* How many plain characters may follow, whatever they are: the most that a lexeme takes. */
static uint32_t plain_most(struct matcher *matcher)
{
        uint32_t last = matcher->position_count - 1, most = 0;

        for (uint32_t i = matcher_first_thread(matcher, last);
             i < matcher->positions[last].threads_end; i++) {
                uint32_t count = lexer_plain(&matcher->grammar->lexer, matcher->threads[i].state);

                if (count > most)
                        most = count;
        }
        return most;
}

/* Control tokens are few, and their first byte alone says mostly that none is legal. */
static enum push walk_controls(struct walk *walk)
{
        const struct token_trie *trie = walk->matcher->trie;
        struct place lead;
        enum push pushed = step(walk, &walk->first, TOKEN_LEAD, &lead);

        for (uint32_t i = 0; i < trie->control_count && pushed == PUSH_FINE; i++) {
                uint8_t bytes[TOKEN_BYTES];
                struct place from, to = lead;

                grammar_token_bytes(trie->controls[i], bytes);
                for (unsigned j = 1; j < TOKEN_BYTES && pushed == PUSH_FINE; j++) {
                        from = to;
                        pushed = step(walk, &from, bytes[j], &to);
                }
                if (pushed == PUSH_FINE)
                        set_bit(walk->bits, trie->controls[i]);
                else if (pushed == PUSH_DEAD)
                        pushed = PUSH_FINE;
        }
        return pushed;
}

/* Whether a lexeme that is read takes all tokens of the slice. */
static bool takes_slice(const struct walk *walk, const struct trie_slice *slice, uint32_t plain)
{
        const struct matcher *matcher = walk->matcher;
        uint32_t first = walk->first.position;

        if (slice->characters && slice->characters <= plain)
                return true;
        for (uint32_t i = matcher_first_thread(matcher, first);
             i < matcher->positions[first].threads_end; i++)
                if (lexer_stays(&matcher->grammar->lexer, matcher->threads[i].state, &slice->bytes))
                        return true;
        return false;
}

static void add_slice(const struct trie_slice *slice, uint32_t *bits, uint32_t words)
{
        for (uint32_t i = 0; i < words; i++)
                bits[i] |= slice->bits[i];
}

/* Walks all tokens but those of slices that the lexemes take wholly. */
static enum push walk_all(struct walk *walk)
{
        struct matcher *matcher = walk->matcher;
        const struct token_trie *trie = matcher->trie;
        uint32_t plain = plain_most(matcher);

        if (walk->first.inside)
                walk->inside = inside_begin(&matcher->inside);
        for (enum token_slice which = 0; which < SLICE_COUNT; which++) {
                const struct trie_slice *slice = &trie->slices[which];

                if (takes_slice(walk, slice, plain)) {
                        add_slice(slice, walk->bits, trie->words);
                        if (walk->inside)
                                add_slice(slice, walk->inside->bits, trie->words);
                } else if (walk_nodes(walk, which, 0, slice->count, &walk->first) == PUSH_SPENT) {
                        return PUSH_SPENT;
                }
        }
        if (walk->inside && walk->visited >= INSIDE_VISITED)
                inside_keep(&matcher->inside, walk->first.threads[0].state);
        return PUSH_FINE;
}

enum matcher_outcome matcher_mask(struct matcher *matcher, uint32_t *ret_bits)
{
        const struct inside *inside = NULL;
        size_t bytes = matcher->trie->words * sizeof(*ret_bits);
        struct walk walk;
        enum push pushed;

        if (matcher->why)
                return MATCHER_SPENT;
        regex_refuel(matcher->grammar->pool, matcher->limits.fuel);
        matcher_compact(matcher);
        walk_init(&walk, matcher, ret_bits);
        if (walk.first.inside)
                inside = inside_find(&matcher->inside, walk.first.threads[0].state);
        if (inside)
                memcpy(ret_bits, inside->bits, bytes);
        else
                memset(ret_bits, 0, bytes);
        pushed = inside ? walk_exits(&walk, inside) : walk_all(&walk);
        if (pushed != PUSH_SPENT)
                pushed = walk_controls(&walk);
        if (pushed != PUSH_SPENT && !regex_burn(matcher->grammar->pool, walk.visited))
                pushed = matcher_spend(matcher, "a mask takes more work than the limit");
        if (pushed == PUSH_SPENT)
                return MATCHER_SPENT;
        matcher_cut(matcher, walk.first.position);
        return MATCHER_FINE;
}

/* The only byte that may follow, or -1; -2: a budget is spent. */
static int only_byte(struct matcher *matcher)
{
        const struct lexer *lexer = &matcher->grammar->lexer;
        uint32_t base = matcher->position_count - 1;
        int only = -1;

        if (matcher_can_end(matcher))
                return -1;
        for (unsigned byte = 0; byte < 256; byte++) {
                enum push pushed;

                if (byte && lexer->class_of[byte] == lexer->class_of[byte - 1] && only < 0)
                        continue;
                pushed = matcher_push(matcher, byte);
                if (pushed == PUSH_SPENT)
                        return -2;
                if (pushed == PUSH_DEAD)
                        continue;
                matcher_cut(matcher, base);
                if (only >= 0)
                        return -1;
                only = byte;
        }
        return only;
}

enum matcher_outcome matcher_forced(struct matcher *matcher, uint8_t *ret_bytes, size_t size,
                                    size_t *ret_count)
{
        uint32_t base;
        int byte = 0;

        *ret_count = 0;
        if (matcher->why)
                return MATCHER_SPENT;
        regex_refuel(matcher->grammar->pool, matcher->limits.fuel);
        matcher_compact(matcher);
        base = matcher->position_count - 1;
        while (*ret_count < size && (byte = only_byte(matcher)) >= 0 && byte != TOKEN_LEAD) {
                ret_bytes[(*ret_count)++] = byte;
                if (matcher_push(matcher, byte) == PUSH_SPENT)
                        return MATCHER_SPENT;
        }
        if (matcher->why)
                return MATCHER_SPENT;
        matcher_cut(matcher, base);
        return MATCHER_FINE;
}
