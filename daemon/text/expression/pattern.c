#include "daemon/text/expression/pattern.h"

#include <stdlib.h>
#include <string.h>

static bool same(const struct charset *a, const struct charset *b)
{
        return a->count == b->count &&
               (!a->count || !memcmp(a->ranges, b->ranges, a->count * sizeof(*a->ranges)));
}

int pattern_keep_set(struct pattern *p, struct charset *set, uint32_t *ret_set)
{
        struct tree *tree = p->tree;

        *ret_set = 0;
        while (*ret_set < tree->set_count && !same(&tree->sets[*ret_set], set))
                ++*ret_set;
        if (*ret_set < tree->set_count) {
                charset_deinit(set);
                return 0;
        }
        if (set->count > TREE_RANGES_MAX - tree->range_count) {
                charset_deinit(set);
                return pattern_refuse(p, "its classes have more than %u ranges of characters",
                                      TREE_RANGES_MAX);
        }
        if (tree->set_count == tree->set_capacity) {
                uint32_t capacity = tree->set_capacity ? 2 * tree->set_capacity : 16;
                struct charset *sets = reallocarray(tree->sets, capacity, sizeof(*sets));

                if (!sets) {
                        charset_deinit(set);
                        return error_raise(-ENOMEM);
                }
                tree->sets = sets;
                tree->set_capacity = capacity;
        }
        tree->sets[tree->set_count++] = *set;
        tree->range_count += set->count;
        *set = (struct charset){ 0 };
        return 0;
}
