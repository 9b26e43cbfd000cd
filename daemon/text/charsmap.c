/*
 * The trie is that of the library Darts-clone.  A state is a base.  The unit at base ^ byte leads
 * on if its label is that byte.  The base behind it is its place ^ its offset.  If a text ends
 * there, the unit at that base has the offset of the replacement.
 */
#include "daemon/text/charsmap.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/clusters.h"
#include "daemon/text/unicode.h"

#define CLUSTER_BYTES 6u /* `tokenizers` takes clusters of less than this whole */

struct charsmap {
        uint32_t *units;
        char *texts; /* with a zero byte behind all */
        uint32_t unit_count, text_bytes, root, growth;
};

/* ---- the trie ---- */

static uint32_t unit_label(uint32_t unit)
{
        return unit & (1u << 31 | 0xFF);
}

static uint32_t unit_offset(uint32_t unit)
{
        return unit >> 10 << (unit >> 9 & 1) * 8;
}

/* Follows one byte.  *ret_text: the replacement if a text ends here, or UINT32_MAX. */
static bool step(const struct charsmap *map, uint32_t *base, uint8_t byte, uint32_t *ret_text)
{
        uint32_t at = *base ^ byte, unit;

        if (!byte || at >= map->unit_count || unit_label(map->units[at]) != byte)
                return false;
        unit = map->units[at];
        *base = at ^ unit_offset(unit);
        *ret_text = UINT32_MAX;
        if (*base >= map->unit_count)
                return false;
        if (unit >> 8 & 1) {
                uint32_t text = map->units[*base] & ~(1u << 31);

                if (text < map->text_bytes)
                        *ret_text = text;
        }
        return true;
}

/* The bytes of the longest, or shortest, text that is replaced here; 0: none is. */
static size_t find(const struct charsmap *map, const char *text, size_t bytes, bool longest,
                   uint32_t *ret_text, uint64_t *steps)
{
        uint32_t base = map->root, found;
        size_t at = 0, end = 0;

        if (bytes > CHARSMAP_KEY_MAX)
                bytes = CHARSMAP_KEY_MAX;
        while (at < bytes && (longest || !end) && step(map, &base, (uint8_t)text[at], &found)) {
                at++;
                if (found == UINT32_MAX)
                        continue;
                end = at;
                *ret_text = found;
        }
        *steps += at + 1;
        return end;
}

/* ---- opening ---- */

/* Of each place in the replacements: the bytes up to the zero byte behind it. */
static uint32_t *measure_texts(const struct charsmap *map)
{
        uint32_t *lengths = reallocarray(NULL, (size_t)map->text_bytes + 1, sizeof(*lengths));

        if (!lengths)
                return NULL;
        lengths[map->text_bytes] = 0;
        for (uint32_t at = map->text_bytes; at--;)
                lengths[at] = map->texts[at] ? lengths[at + 1] + 1 : 0;
        return lengths;
}

struct survey {
        const uint32_t *lengths;
        uint32_t *bases; /* of all states that were reached, level by level */
        uint8_t *seen;   /* by base */
        uint32_t count;
};

static void survey_state(struct charsmap *map, struct survey *s, uint32_t from, uint32_t depth)
{
        for (unsigned byte = 1; byte < 256; byte++) {
                uint32_t base = from, text;

                if (!step(map, &base, (uint8_t)byte, &text))
                        continue;
                if (text != UINT32_MAX) {
                        uint32_t growth = (s->lengths[text] + depth - 1) / depth;

                        if (growth > map->growth)
                                map->growth = growth;
                }
                if (s->seen[base])
                        continue;
                s->seen[base] = 1;
                s->bases[s->count++] = base;
        }
}

/*
 * How much a text may grow.  A state is visited once, on the shortest way to it, where its
 * replacements are longest for the text that they replace.  So any table takes linear time.
 */
static int survey(struct charsmap *map)
{
        uint32_t *lengths = measure_texts(map);
        struct survey s = { .lengths = lengths };
        uint32_t at = 0, level = 0;
        int r = -ENOMEM;

        s.bases = reallocarray(NULL, (size_t)map->unit_count + 1, sizeof(*s.bases));
        s.seen = calloc((size_t)map->unit_count, 1);
        if (lengths && s.bases && s.seen) {
                s.bases[s.count++] = map->root;
                for (uint32_t depth = 1; at < s.count && depth <= CHARSMAP_KEY_MAX; depth++)
                        for (level = s.count; at < level; at++)
                                survey_state(map, &s, s.bases[at], depth);
                r = 0;
        }
        free(lengths);
        free(s.bases);
        free(s.seen);
        return error_raise(r);
}

static int copy(struct charsmap *map, const char *blob, size_t bytes, uint32_t table)
{
        map->unit_count = table / 4;
        map->text_bytes = (uint32_t)(bytes - 4 - table);
        map->growth = 1;
        map->units = malloc(table);
        map->texts = malloc((size_t)map->text_bytes + 1);
        if (!map->units || !map->texts)
                return error_raise(-ENOMEM);
        memcpy(map->units, blob + 4, table);
        memcpy(map->texts, blob + 4 + table, map->text_bytes);
        map->texts[map->text_bytes] = '\0';
        for (uint32_t i = 0; i < map->unit_count; i++)
                map->units[i] = le32toh(map->units[i]);
        map->root = unit_offset(map->units[0]);
        return error_pass(survey(map));
}

int charsmap_open(const char *blob, size_t bytes, struct charsmap **ret_map, char *why,
                  size_t why_bytes)
{
        struct charsmap *map;
        uint32_t table = 0;
        int r;

        if (bytes > CHARSMAP_BYTES_MAX)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "its normalisation rules have %zu bytes, the limit "
                                               "is %u",
                                               bytes, CHARSMAP_BYTES_MAX));
        if (bytes >= 4)
                memcpy(&table, blob, 4);
        table = le32toh(table);
        if (!table || table % 4 || table > bytes - 4)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "its normalisation rules have %zu bytes, with a "
                                               "table of %u",
                                               bytes, table));
        map = calloc(1, sizeof(*map));
        r = map ? copy(map, blob, bytes, table) : error_raise(-ENOMEM);
        if (r) {
                charsmap_close(map);
                return error_pass(errtext_set(why, why_bytes, r, "out of memory"));
        }
        *ret_map = map;
        return 0;
}

struct charsmap *charsmap_close(struct charsmap *map)
{
        if (!map)
                return NULL;
        free(map->units);
        free(map->texts);
        free(map);
        return NULL;
}

uint32_t charsmap_growth(const struct charsmap *map)
{
        return map->growth;
}

/* ---- texts ---- */

static size_t put_text(const struct charsmap *map, uint32_t text, char *to)
{
        size_t bytes = strlen(map->texts + text);

        memcpy(to, map->texts + text, bytes);
        return bytes;
}

size_t charsmap_run(const struct charsmap *map, const struct trie *kept, const char *text,
                    size_t bytes, char *to, uint64_t *steps)
{
        size_t count = 0, n;
        uint32_t code, found;

        for (size_t at = 0; at < bytes; at += n) {
                n = kept ? trie_longest(kept, text + at, bytes - at, steps) : 0;
                if (!n && (n = find(map, text + at, bytes - at, true, &found, steps)) > 0) {
                        count += put_text(map, found, to + count);
                        continue;
                }
                if (!n)
                        n = unicode_next(text + at, bytes - at, &code);
                memcpy(to + count, text + at, n);
                count += n;
        }
        assert(count <= (size_t)map->growth * bytes);
        return count;
}

/* Replaces the text whole if it begins with one that is replaced. */
static bool replace(const struct charsmap *map, const char *text, size_t bytes, char *to,
                    size_t *count, uint64_t *steps)
{
        uint32_t found;

        if (!find(map, text, bytes, false, &found, steps))
                return false;
        *count += put_text(map, found, to + *count);
        return true;
}

size_t charsmap_run_clusters(const struct charsmap *map, const char *text, size_t bytes, char *to,
                             uint64_t *steps)
{
        size_t count = 0;

        for (size_t at = 0, end, n; at < bytes; at = end) {
                end = at + cluster_next(text + at, bytes - at);
                *steps += end - at;
                if (end - at < CLUSTER_BYTES &&
                    replace(map, text + at, end - at, to, &count, steps))
                        continue;
                for (; at < end; at += n) {
                        uint32_t code;

                        n = unicode_next(text + at, end - at, &code);
                        if (replace(map, text + at, n, to, &count, steps))
                                continue;
                        memcpy(to + count, text + at, n);
                        count += n;
                }
        }
        assert(count <= (size_t)map->growth * bytes);
        return count;
}
