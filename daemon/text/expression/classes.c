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
        uint32_t border_count, page_capacity;
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

/* Pages that are the same are stored once. */
static int add_page(struct maker *m, const uint8_t *codes, uint16_t *ret_place)
{
        struct classes *classes = m->classes;
        uint32_t k = 0;

        while (k < classes->table_pages &&
               memcmp(classes->table + (size_t)k * CLASSES_PAGE, codes, CLASSES_PAGE))
                k++;
        *ret_place = (uint16_t)k;
        if (k < classes->table_pages)
                return 0;
        if (classes->table_pages == m->page_capacity) {
                uint32_t capacity = m->page_capacity ? 2 * m->page_capacity : 64;
                uint8_t *table = reallocarray(classes->table, capacity, CLASSES_PAGE);

                if (!table)
                        return error_raise(-ENOMEM);
                classes->table = table;
                m->page_capacity = capacity;
        }
        memcpy(classes->table + (size_t)k * CLASSES_PAGE, codes, CLASSES_PAGE);
        classes->table_pages++;
        return 0;
}

/* The classes of a page; *class and *border are those at its begin, then those behind it. */
static int find_page(struct maker *m, uint32_t page, uint32_t *class, uint32_t *border,
                     uint8_t *codes)
{
        for (uint32_t k = 0; k < CLASSES_PAGE; k++) {
                uint32_t code = page * CLASSES_PAGE + k;

                if (m->borders[*border] == code) {
                        int r = class_like(m, code, class);

                        if (r)
                                return error_pass(r);
                        ++*border;
                }
                codes[k] = (uint8_t) * class;
        }
        return 0;
}

static int fill(struct maker *m)
{
        struct classes *classes = m->classes;
        uint32_t class = 0, border = 0; /* the last border is CHARSET_INVALID */
        uint8_t codes[CLASSES_PAGE];
        bool had_border = true;
        int r = 0;

        classes->pages = calloc(PAGES, sizeof(*classes->pages));
        if (!classes->pages)
                return error_raise(-ENOMEM);
        for (uint32_t page = 0; !r && page < PAGES; page++) {
                bool has_border = m->borders[border] < (page + 1) * CLASSES_PAGE;

                if (!has_border && !had_border) {
                        classes->pages[page] = classes->pages[page - 1];
                        continue;
                }
                r = find_page(m, page, &class, &border, codes);
                if (!r)
                        r = add_page(m, codes, &classes->pages[page]);
                had_border = has_border;
        }
        if (!r)
                r = class_like(m, CHARSET_INVALID, &class);
        if (r)
                return error_pass(r);
        memcpy(classes->ascii, classes->table, CLASSES_PAGE); /* the first page is in front */
        classes->invalid = (uint8_t) class;
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
        int r = find_borders(&m);

        if (!r) {
                m.members = calloc(CLASSES_MAX + 1, (size_t)set_count + 1);
                r = m.members ? fill(&m) : error_raise(-ENOMEM);
        }
        if (!r)
                r = turn_members(&m);
        free(m.members);
        free(m.borders);
        if (r) {
                classes_deinit(&classes);
                return error_pass(r);
        }
        *ret_classes = classes;
        return 0;
}
