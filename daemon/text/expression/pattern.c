#include "daemon/text/expression/pattern.h"

#include <stdlib.h>

int pattern_keep_set(struct pattern *p, struct charset *set, uint32_t *ret_set)
{
        struct tree *tree = p->tree;

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
        *ret_set = tree->set_count;
        tree->sets[tree->set_count++] = *set;
        *set = (struct charset){ 0 };
        return 0;
}
