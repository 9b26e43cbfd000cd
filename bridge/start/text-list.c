#include "bridge/start/text-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Cuts the blanks around an item off. */
static char *trim(char *item)
{
        size_t bytes;

        item += strspn(item, " \t");
        for (bytes = strlen(item); bytes && strchr(" \t", item[bytes - 1]);)
                bytes--;
        item[bytes] = '\0';
        return item;
}

static int split(struct text_list *list)
{
        char *rest = list->text, *item;

        while ((item = strsep(&rest, ","))) {
                item = trim(item);
                if (!*item)
                        return error_raise(-EINVAL);
                list->items[list->count++] = item;
        }
        return 0;
}

int text_list_init(struct text_list *list, const char *text)
{
        size_t most = 2; /* one item, and NULL */
        int r;

        *list = (struct text_list){ .text = strdup(text ? text : "") };
        for (const char *c = list->text; c && *c; c++)
                most += *c == ',';
        list->items = calloc(most, sizeof(*list->items));
        r = list->text && list->items ? 0 : error_raise(-ENOMEM);
        if (!r && text)
                r = split(list);
        if (r)
                text_list_deinit(list);
        return error_pass(r);
}

void text_list_deinit(struct text_list *list)
{
        free(list->text);
        free(list->items);
        *list = (struct text_list){ 0 };
}
