#include "cli/bench/workload.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SALT UINT64_C(0xd1342543de82ef95)

/* The generators of a run's seed. */
#define DRAW_LENGTHS (UINT64_C(1) << 40)
#define DRAW_PREFIX  (UINT64_C(2) << 40)
#define DRAW_OWN     (UINT64_C(3) << 40)
#define DRAW_FIRST   (UINT64_C(4) << 40)
#define DRAW_HASHES  (UINT64_C(5) << 56)

/* Common words, so that most vocabularies have a token for each. */
static const char *const words[] = {
        "the",    "of",     "and",     "to",   "in",      "is",      "was",    "he",    "for",
        "it",     "with",   "as",      "his",  "on",      "be",      "at",     "by",    "had",
        "not",    "are",    "but",     "from", "or",      "have",    "an",     "they",  "which",
        "one",    "you",    "were",    "her",  "all",     "she",     "there",  "would", "their",
        "we",     "him",    "been",    "has",  "when",    "who",     "will",   "more",  "no",
        "if",     "out",    "so",      "said", "what",    "up",      "its",    "about", "into",
        "than",   "them",   "can",     "only", "other",   "new",     "some",   "could", "time",
        "these",  "two",    "may",     "then", "do",      "first",   "any",    "my",    "now",
        "such",   "like",   "our",     "over", "man",     "me",      "even",   "most",  "made",
        "after",  "also",   "did",     "many", "before",  "must",    "years",  "back",  "way",
        "well",   "should", "because", "each", "just",    "those",   "people", "how",   "too",
        "little", "state",  "good",    "very", "make",    "world",   "still",  "own",   "see",
        "men",    "work",   "long",    "get",  "here",    "between", "both",   "life",  "being",
        "under",  "never",  "day",     "same", "another", "know",    "while",  "last",  "might",
        "us",     "great",  "old",     "year",
};
#define WORDS (sizeof(words) / sizeof(*words))

/* Space for one more element of a growing array. */
static int grow(void **array, uint32_t count, uint32_t *size, size_t element)
{
        uint32_t wanted = *size ? 2 * *size : 64;
        void *more;

        if (count < *size)
                return 0;
        more = realloc(*array, wanted * element);
        if (!more)
                return -ENOMEM;
        *array = more;
        *size = wanted;
        return 0;
}

int workload_add(struct workload *workload, const struct work *work)
{
        int r = grow((void **)&workload->works, workload->count, &workload->size, sizeof(*work));

        if (!r)
                workload->works[workload->count++] = *work;
        return r;
}

int workload_add_text(struct workload *workload, const char *text, size_t bytes, size_t *ret_at)
{
        int r;

        *ret_at = workload->texts.count;
        r = bytes_add(&workload->texts, text, bytes);
        return r ? r : bytes_add(&workload->texts, "", 1);
}

int workload_add_message(struct workload *workload, const struct work_message *message)
{
        int r = grow((void **)&workload->messages, workload->message_count, &workload->message_size,
                     sizeof(*message));

        if (!r)
                workload->messages[workload->message_count++] = *message;
        return r;
}

int workload_add_hash(struct workload *workload, uint64_t hash)
{
        int r = grow((void **)&workload->hashes, workload->hash_count, &workload->hash_size,
                     sizeof(hash));

        if (!r)
                workload->hashes[workload->hash_count++] = hash;
        return r;
}

static uint32_t divided(uint32_t length, double divisor)
{
        double n = ceil(length / divisor);

        return n > 1 ? (uint32_t)n : 1;
}

void workload_divide(struct workload *workload, double divisor)
{
        for (uint32_t i = 0; i < workload->count; i++) {
                workload->works[i].input = divided(workload->works[i].input, divisor);
                workload->works[i].output = divided(workload->works[i].output, divisor);
        }
        workload->block_tokens = divided(workload->block_tokens, divisor);
}

void workload_deinit(struct workload *workload)
{
        free(workload->works);
        free(workload->messages);
        free(workload->hashes);
        free(workload->symbols);
        free(workload->chat);
        bytes_deinit(&workload->texts);
        bytes_deinit(&workload->text);
        *workload = (struct workload){ .count = 0 };
}

/* ---- symbols: numbers that stand for tokens or words ---- */

static int make_space(struct workload *workload, uint32_t count)
{
        uint32_t *more;

        workload->symbol_count = 0;
        if (count <= workload->symbol_size)
                return 0;
        more = realloc(workload->symbols, count * sizeof(*more));
        if (!more)
                return -ENOMEM;
        workload->symbols = more;
        workload->symbol_size = count;
        return 0;
}

/* Until there are `until` symbols. */
static void add_symbols(struct workload *workload, struct draws draws, uint32_t until,
                        uint32_t kinds)
{
        while (workload->symbol_count < until)
                workload->symbols[workload->symbol_count++] = draws_below(&draws, kinds);
}

/* The symbols of one request alone.  The first differs from those of the requests around it. */
static void add_own(struct workload *workload, uint64_t seed, uint32_t number, uint32_t until,
                    uint32_t kinds)
{
        struct draws first = draws_begin(seed, DRAW_FIRST);

        if (workload->symbol_count < until)
                workload->symbols[workload->symbol_count++] =
                        (uint32_t)((draws_below(&first, kinds) + (uint64_t)number) % kinds);
        add_symbols(workload, draws_begin(seed, DRAW_OWN + number), until, kinds);
}

struct shape {                          /* of a request, in tokens */
        uint32_t input, output, prefix; /* input: with the prefix */
        uint32_t which;                 /* prefix */
};

static struct shape draw_shape(const struct workload *workload, uint64_t seed, uint32_t number)
{
        struct draws draws = draws_begin(seed, DRAW_LENGTHS + number);
        struct shape shape = { .input = lengths_draw(&workload->input, &draws),
                               .output = lengths_draw(&workload->output, &draws) };

        if (workload->prefix_tokens && draws_uniform(&draws) < workload->prefix_share) {
                shape.prefix = workload->prefix_tokens;
                shape.which = draws_below(&draws, workload->prefix_count);
                shape.input += shape.prefix;
        }
        return shape;
}

static const struct work *work_of(const struct workload *workload, uint32_t number)
{
        return &workload->works[number % workload->count];
}

static struct shape shape_of(const struct workload *workload, uint64_t seed, uint32_t number)
{
        const struct work *work;

        if (workload->kind == WORKLOAD_SYNTHETIC)
                return draw_shape(workload, seed, number);
        work = work_of(workload, number);
        return (struct shape){ .input = work->input, .output = work->output };
}

uint64_t workload_longest(const struct workload *workload, uint64_t seed, uint32_t count)
{
        uint64_t longest = 0;

        for (uint32_t i = 0; i < count; i++) {
                struct shape shape = shape_of(workload, seed, i);
                uint64_t length = (uint64_t)shape.input + shape.output;

                longest = length > longest ? length : longest;
        }
        return longest;
}

static uint32_t symbols_for(const struct encoding *encoding, uint32_t tokens)
{
        double count = tokens;

        if (!encoding->ids)
                count = round((tokens - encoding->more_tokens) * encoding->words_a_token);
        return count < 1 ? 1 : (uint32_t)count;
}

/* The blocks of a trace: equal hashes, equal tokens. */
static void add_blocks(struct workload *workload, const struct encoding *encoding, uint64_t seed,
                       const struct work *work, uint32_t until, uint32_t kinds)
{
        uint32_t block = encoding->ids ? workload->block_tokens
                                       : (uint32_t)fmax(1, round(workload->block_tokens *
                                                                 encoding->words_a_token));

        for (uint32_t i = 0; i < work->hash_count; i++) {
                uint64_t end = (uint64_t)(i + 1) * block;

                add_symbols(workload,
                            draws_begin(seed, DRAW_HASHES ^ workload->hashes[work->first_hash + i]),
                            end < until ? (uint32_t)end : until, kinds);
        }
}

static int make_symbols(struct workload *workload, const struct encoding *encoding, uint64_t seed,
                        uint32_t number, const struct shape *shape)
{
        uint32_t kinds = encoding->ids ? encoding->id_count : WORDS;
        uint32_t all = symbols_for(encoding, shape->input);
        uint32_t prefix = shape->prefix ? symbols_for(encoding, shape->prefix) : 0;
        int r = make_space(workload, all);

        if (r)
                return r;
        seed += SALT * encoding->salt;
        if (workload->kind == WORKLOAD_TRACE)
                add_blocks(workload, encoding, seed, work_of(workload, number), all, kinds);
        add_symbols(workload, draws_begin(seed, DRAW_PREFIX + shape->which),
                    prefix < all ? prefix : all, kinds);
        add_own(workload, seed, number, all, kinds);
        return 0;
}

static int spell(struct workload *workload)
{
        int r = 0;

        workload->text.count = 0;
        for (uint32_t i = 0; i < workload->symbol_count && !r; i++) {
                const char *word = words[workload->symbols[i]];

                if (i)
                        r = bytes_add(&workload->text, " ", 1);
                if (!r)
                        r = bytes_add(&workload->text, word, strlen(word));
        }
        return r ? r : bytes_add(&workload->text, "", 1);
}

static int make_up(struct workload *workload, const struct encoding *encoding, uint64_t seed,
                   uint32_t number, const struct shape *shape, struct prompt *ret_prompt)
{
        int r = make_symbols(workload, encoding, seed, number, shape);

        if (r)
                return r;
        if (!encoding->ids) {
                r = spell(workload);
                ret_prompt->text = workload->text.at;
                return r;
        }
        for (uint32_t i = 0; i < workload->symbol_count; i++)
                workload->symbols[i] = encoding->ids[workload->symbols[i]];
        ret_prompt->ids = workload->symbols;
        ret_prompt->id_count = workload->symbol_count;
        return 0;
}

/* ---- prompts of a file ---- */

static int take_messages(struct workload *workload, const struct work *work,
                         struct prompt *ret_prompt)
{
        int r = 0;

        for (uint32_t i = 0; i < work->message_count && !r; i++) {
                const struct work_message *message = &workload->messages[work->first_message + i];

                r = grow((void **)&workload->chat, i, &workload->chat_size,
                         sizeof(*workload->chat));
                if (!r)
                        workload->chat[i] = (struct smv_message){
                                .role = workload->texts.at + message->role,
                                .content = workload->texts.at + message->content,
                        };
        }
        ret_prompt->messages = workload->chat;
        ret_prompt->message_count = work->message_count;
        return r;
}

int workload_prompt(struct workload *workload, const struct encoding *encoding, uint64_t seed,
                    uint32_t number, struct prompt *ret_prompt)
{
        struct shape shape = shape_of(workload, seed, number);
        struct draws draws = draws_begin(seed, DRAW_LENGTHS + number);

        *ret_prompt = (struct prompt){ .input = shape.input,
                                       .output = shape.output,
                                       .ignore_eos = workload->ignore_eos };
        if (workload->kind != WORKLOAD_PROMPTS)
                return make_up(workload, encoding, seed, number, &shape, ret_prompt);
        if (!ret_prompt->output)
                ret_prompt->output = lengths_draw(&workload->output, &draws);
        if (work_of(workload, number)->message_count)
                return take_messages(workload, work_of(workload, number), ret_prompt);
        ret_prompt->text = workload->texts.at + work_of(workload, number)->text;
        return 0;
}
