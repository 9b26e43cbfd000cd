/* The rules GB3 to GB9c and GB11; GB12 and GB13, of pairs of flags, are left out. */
#include "daemon/text/clusters.h"

#include <stdbool.h>

#define SYLLABLES      0xAC00u
#define SYLLABLE_COUNT 11172u
#define SYLLABLE_LASTS 28u /* syllables with the same first and middle letter */

static unsigned kind_of(uint32_t code)
{
        if (code == UNICODE_INVALID)
                return CLUSTER_CONTROL;
        return unicode_look_up(cluster_kinds, cluster_kind_count, code);
}

/* Whether Hangul letters, or syllables that end in one, go on with this one. */
static bool joins_hangul(uint32_t before, unsigned before_kind, uint32_t code, unsigned kind)
{
        bool is_syllable = code - SYLLABLES < SYLLABLE_COUNT;
        bool was_syllable = before - SYLLABLES < SYLLABLE_COUNT;
        bool was_open = was_syllable && (before - SYLLABLES) % SYLLABLE_LASTS == 0;

        if (before_kind == CLUSTER_L)
                return kind == CLUSTER_L || kind == CLUSTER_V || is_syllable;
        if (before_kind == CLUSTER_V || was_open)
                return kind == CLUSTER_V || kind == CLUSTER_T;
        return (before_kind == CLUSTER_T || was_syllable) && kind == CLUSTER_T;
}

/* The characters of a cluster so far, as far as they matter for the next one. */
struct cluster {
        uint32_t code;
        unsigned kind;
        bool is_picture;          /* it ends in a picture and what extends it, then one joiner */
        bool is_consonant, links; /* it ends in a consonant and what extends it, with a linker */
};

static void take(struct cluster *c, uint32_t code, unsigned value)
{
        unsigned kind = value & CLUSTER_KINDS;

        if (kind == CLUSTER_PICTURE)
                c->is_picture = true;
        else if (c->kind == CLUSTER_JOINER || (kind != CLUSTER_EXTEND && kind != CLUSTER_JOINER))
                c->is_picture = false;
        c->code = code;
        c->kind = kind;
        if (value & CONJUNCT_CONSONANT) {
                c->is_consonant = true;
                c->links = false;
        } else if (value & CONJUNCT_LINKER) {
                c->links = c->is_consonant;
        } else if (!(value & CONJUNCT_EXTEND)) {
                c->is_consonant = c->links = false;
        }
}

static bool goes_on(const struct cluster *c, uint32_t code, unsigned value, bool was_joined)
{
        unsigned kind = value & CLUSTER_KINDS;

        if (c->kind == CLUSTER_CONTROL || kind == CLUSTER_CONTROL)
                return c->code == '\r' && code == '\n';
        if (kind == CLUSTER_EXTEND || kind == CLUSTER_JOINER || kind == CLUSTER_MARK ||
            c->kind == CLUSTER_PREPEND)
                return true;
        if (kind == CLUSTER_PICTURE && was_joined)
                return true;
        if (value & CONJUNCT_CONSONANT && c->links)
                return true;
        return joins_hangul(c->code, c->kind, code, kind);
}

size_t cluster_next(const char *text, size_t bytes)
{
        struct cluster c = { 0 };
        uint32_t code;
        size_t at = unicode_next(text, bytes, &code), n;

        take(&c, code, kind_of(code));
        while (at < bytes) {
                unsigned value;

                n = unicode_next(text + at, bytes - at, &code);
                value = kind_of(code);
                if (!goes_on(&c, code, value, c.is_picture && c.kind == CLUSTER_JOINER))
                        break;
                take(&c, code, value);
                at += n;
        }
        return at;
}
