#include "daemon/text/expression/classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"

#define PAGES (CHARSET_INVALID / CLASSES_PAGE)

struct maker {
        struct classes *classes;
        const struct charset *sets;
        uint32_t set_count;
        uint32_t *borders; /* codes at which a set begins or ends, sorted */
        uint32_t border_count;
        uint8_t *members; /* as in struct classes, but [class * set_count + set] */
        char *why;
        size_t why_bytes;
};

void classes_deinit(struct classes *classes)
{
        free(classes->pages);
        free(classes->table);
        free(classes->members);
        *classes = (struct classes){ 0 };
}

static int compare(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return x < y ? -1 : x > y;
}

static int find_borders(struct maker *m)
{
        uint32_t count = 2, at = 0;

        for (uint32_t i = 0; i < m->set_count; i++)
                count += 2 * m->sets[i].count;
        m->borders = calloc(count, sizeof(*m->borders));
        if (!m->borders)
                return error_raise(-ENOMEM);
        m->borders[at++] = 0;
        m->borders[at++] = CHARSET_INVALID;
        for (uint32_t i = 0; i < m->set_count; i++)
                for (uint32_t k = 0; k < m->sets[i].count; k++) {
                        m->borders[at++] = m->sets[i].ranges[k].first;
                        m->borders[at++] = m->sets[i].ranges[k].last + 1;
                }
        qsort(m->borders, at, sizeof(*m->borders), compare);
        for (uint32_t i = 0; i < at; i++)
                if (m->borders[i] < CHARSET_END &&
                    (!m->border_count || m->borders[m->border_count - 1] != m->borders[i]))
                        m->borders[m->border_count++] = m->borders[i];
        return 0;
}

/* The class of characters like this one, a new one if there is none yet. */
static int class_like(struct maker *m, uint32_t code, uint32_t *ret_class)
{
        uint8_t *row = m->members + (size_t)m->classes->count * m->set_count;

        for (uint32_t i = 0; i < m->set_count; i++)
                row[i] = charset_has(&m->sets[i], code);
        for (*ret_class = 0; *ret_class < m->classes->count; (*ret_class)++)
                if (!memcmp(m->members + (size_t)*ret_class * m->set_count, row, m->set_count))
                        return 0;
        if (m->classes->count == CLASSES_MAX)
                return error_raise(errtext_set(m->why, m->why_bytes, -EINVAL,
                                               "it tells more than %u classes of characters apart",
                                               CLASSES_MAX));
        m->classes->count++;
        return 0;
}

/* The class of every code: plain[code]. */
static int fill_plain(struct maker *m, uint8_t *plain)
{
        for (uint32_t i = 0; i < m->border_count; i++) {
                uint32_t class, first = m->borders[i];
                uint32_t end = i + 1 < m->border_count ? m->borders[i + 1] : CHARSET_END;
                int r = class_like(m, first, &class);

                if (r)
                        return error_pass(r);
                memset(plain + first, (int)class, end - first);
        }
        return 0;
}

/* Pages that are the same are stored once. */
static int pack(struct maker *m, const uint8_t *plain)
{
        struct classes *classes = m->classes;
        uint32_t capacity = 0;

        classes->pages = calloc(PAGES, sizeof(*classes->pages));
        if (!classes->pages)
                return error_raise(-ENOMEM);
        for (uint32_t page = 0; page < PAGES; page++) {
                const uint8_t *from = plain + (size_t)page * CLASSES_PAGE;
                uint32_t k = classes->table_pages;

                while (k &&
                       memcmp(classes->table + (size_t)(k - 1) * CLASSES_PAGE, from, CLASSES_PAGE))
                        k--;
                if (k) {
                        classes->pages[page] = (uint16_t)(k - 1);
                        continue;
                }
                if (classes->table_pages == capacity) {
                        uint8_t *table;

                        capacity = capacity ? 2 * capacity : 64;
                        table = reallocarray(classes->table, capacity, CLASSES_PAGE);
                        if (!table)
                                return error_raise(-ENOMEM);
                        classes->table = table;
                }
                memcpy(classes->table + (size_t)classes->table_pages * CLASSES_PAGE, from,
                       CLASSES_PAGE);
                classes->pages[page] = (uint16_t)classes->table_pages++;
        }
        memcpy(classes->ascii, plain, CLASSES_PAGE);
        classes->invalid = plain[CHARSET_INVALID];
        return 0;
}

static int turn_members(struct maker *m)
{
        struct classes *classes = m->classes;

        classes->members = calloc((size_t)m->set_count * classes->count + 1, 1);
        if (!classes->members)
                return error_raise(-ENOMEM);
        for (uint32_t set = 0; set < m->set_count; set++)
                for (uint32_t class = 0; class < classes->count; class ++)
                        classes->members[set * classes->count + class] =
                                m->members[(size_t) class * m->set_count + set];
        return 0;
}

int classes_make(struct classes *ret_classes, const struct charset *sets, uint32_t set_count,
                 char *why, size_t why_bytes)
{
        struct classes classes = { 0 };
        struct maker m = { &classes, sets, set_count, .why = why, .why_bytes = why_bytes };
        uint8_t *plain = malloc(CHARSET_END);
        int r = plain ? find_borders(&m) : error_raise(-ENOMEM);

        if (!r) {
                m.members = calloc(CLASSES_MAX + 1, (size_t)set_count + 1);
                r = m.members ? fill_plain(&m, plain) : error_raise(-ENOMEM);
        }
        if (!r)
                r = pack(&m, plain);
        if (!r)
                r = turn_members(&m);
        free(m.members);
        free(m.borders);
        free(plain);
        if (r) {
                classes_deinit(&classes);
                return error_pass(r);
        }
        *ret_classes = classes;
        return 0;
}
