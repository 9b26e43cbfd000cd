#include "daemon/text/expression/tree.h"

#include <stdlib.h>

void tree_deinit(struct tree *tree)
{
        for (uint32_t i = 0; i < tree->set_count; i++)
                charset_deinit(&tree->sets[i]);
        free(tree->sets);
        free(tree->nodes);
        *tree = (struct tree){ 0 };
}
