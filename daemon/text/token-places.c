/* Finds added tokens in a text, and cuts it there. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "daemon/text/encoder.h"
#include "daemon/text/unicode.h"

static int note_place(struct encoder *e, size_t at, uint32_t bytes, uint32_t id)
{
        if (e->place_count == e->place_capacity) {
                size_t capacity = e->place_capacity ? 2 * e->place_capacity : 64;
                struct place *places = reallocarray(e->places, capacity, sizeof(*places));

                if (!places)
                        return error_raise(-ENOMEM);
                e->places = places;
                e->place_capacity = capacity;
        }
        e->places[e->place_count++] = (struct place){ (uint32_t)at, bytes, id };
        return 0;
}

/* The search for added tokens on its way back through a text. */
struct walk {
        const struct added_tokens *added_tokens; /* NULL: it finds nothing */
        uint32_t state, id, bytes; /* id and bytes of the word found here; bytes 0: none */
};

static void walk_step(struct walk *walk, char byte, uint64_t *steps)
{
        walk->bytes = 0;
        if (!walk->added_tokens)
                return;
        walk->state = added_tokens_step(walk->added_tokens, walk->state, byte, steps);
        walk->id = added_token(walk->added_tokens, walk->state, &walk->bytes);
        if (walk->id == UINT32_MAX)
                walk->bytes = 0;
}

/* Whether a character of a word is before the place, or behind it. */
static bool word_before(const struct tokenizer *t, const char *text, size_t at)
{
        size_t begin = at - 1;
        uint32_t code;

        while (begin && at - begin < 4 && ((uint8_t)text[begin] & 0xC0) == 0x80)
                begin--;
        unicode_next(text + begin, at - begin, &code);
        return charset_has(&t->word, code);
}

static bool word_behind(const struct tokenizer *t, const char *text, size_t bytes, size_t at)
{
        uint32_t code;

        unicode_next(text + at, bytes - at, &code);
        return charset_has(&t->word, code);
}

static bool is_alone(const struct tokenizer *t, const char *text, size_t bytes,
                     const struct place *place)
{
        size_t end = place->at + place->bytes;

        return (!place->at || !word_before(t, text, place->at)) &&
               (end == bytes || !word_behind(t, text, bytes, end));
}

/*
 * Two walks side by side.  `anywhere` sees all of the text.  `inside` sees one part alone: it
 * enters the part at its end, as if the text ended there.  So it finds only tokens that lie wholly
 * in the part, not those that only begin or end there.  As always, the longer match wins.
 */
static int find_added(struct encoder *e, const struct search *search, const char *text,
                      size_t bytes)
{
        struct walk anywhere = { .added_tokens = search->users },
                    inside = { .added_tokens = search->added };
        const struct text_part *parts = search->parts;
        size_t left = search->part_count;
        uint64_t *steps = &e->how->steps;
        int r = 0;

        for (size_t at = bytes; !r && at;) {
                at--;
                if (encoding_cancelled(e->how))
                        return -ECANCELED;
                for (; left && at < parts[left - 1].begin; left--)
                        inside.state = 0;
                walk_step(&anywhere, text[at], steps);
                inside.bytes = 0;
                if (left && at < parts[left - 1].end)
                        walk_step(&inside, text[at], steps);
                if (inside.bytes && inside.bytes >= anywhere.bytes)
                        r = note_place(e, at, inside.bytes, inside.id);
                else if (anywhere.bytes)
                        r = note_place(e, at, anywhere.bytes, anywhere.id);
        }
        return error_pass(r);
}

int encoder_cut(struct encoder *e, const struct search *search, const char *text, size_t bytes,
                fragment_fn fragment)
{
        const uint8_t *matching = e->t->matching;
        size_t below = e->place_count, done = 0, end;
        int r = 0;

        if (search->users || search->part_count)
                r = find_added(e, search, text, bytes);
        while (!r && e->place_count > below) {
                const struct place place = e->places[--e->place_count];

                if (place.at < done ||
                    (matching[place.id] & ENTRY_ALONE && !is_alone(e->t, text, bytes, &place)))
                        continue;
                end = place.at;
                if (matching[place.id] & ENTRY_STRIPS_LEFT)
                        end = blanks_begin(text, done, end);
                r = fragment(e, text + done, end - done, !done);
                if (r)
                        break;
                encoder_put(e, place.id);
                done = place.at + place.bytes;
                if (matching[place.id] & ENTRY_STRIPS_RIGHT)
                        done = blanks_end(text, done, bytes);
        }
        if (!r)
                r = fragment(e, text + done, bytes - done, !done);
        return error_pass(r);
}
