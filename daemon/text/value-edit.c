#include "daemon/text/value-edit.h"

#include "base/error.h"

int value_edit_member(struct arena *arena, struct value *map, const struct value *old,
                      struct value other)
{
        struct value copy;
        int r = value_map(arena, map->map->count, &copy);

        for (uint32_t i = 0; !r && i < map->map->count; i++) {
                const struct map_entry *entry = &map->map->entries[i];

                r = value_map_add(&copy, entry->key, &entry->value == old ? other : entry->value);
        }
        if (!r)
                r = value_map_end(arena, &copy);
        if (!r)
                *map = copy;
        return error_pass(r);
}

int value_edit_item(struct arena *arena, struct value *list, uint32_t index, struct value other)
{
        uint32_t count = list->list->count;
        struct value copy;
        int r = value_list(arena, count, &copy);

        for (uint32_t i = 0; !r && i < count; i++)
                r = value_list_add(&copy, i == index ? other : list->list->items[i]);
        if (!r)
                *list = copy;
        return error_pass(r);
}
