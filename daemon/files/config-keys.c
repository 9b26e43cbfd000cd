#include "daemon/files/config-keys.h"

#include <stdio.h>
#include <string.h>

#include "json/reader.h"

/* "a.b.c" is the member c in the object b in the object a. */
static bool member_find(struct trait_reader *rd)
{
        const char *at = rd->key;
        char part[KEY_MAX];

        rd->node = rd->root;
        for (;;) {
                size_t n = strcspn(at, ".");

                snprintf(part, sizeof(part), "%.*s", (int)n, at);
                rd->node = json_member(rd->from, rd->node, part);
                if (!at[n])
                        break;
                at += n + 1;
        }
        return rd->node != JSON_NONE && json_kind(rd->from, rd->node) != JSON_NULL;
}

static bool member_whole(const struct trait_reader *rd, uint32_t *ret_value)
{
        uint64_t value;

        if (!json_whole(rd->from, rd->node, &value) || value > UINT32_MAX)
                return false;
        *ret_value = (uint32_t)value;
        return true;
}

static bool member_real(const struct trait_reader *rd, double *ret_value)
{
        return json_real(rd->from, rd->node, ret_value);
}

static bool member_flag(const struct trait_reader *rd, bool *ret_value)
{
        return json_bool(rd->from, rd->node, ret_value);
}

static const char *member_text(const struct trait_reader *rd)
{
        return json_string(rd->from, rd->node, NULL);
}

const struct trait_source config_keys = { "config.json's", member_find, member_whole,
                                          member_real,     member_flag, member_text };
