#include "daemon/edge/wire-request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/utf8.h"

static const char *const op_names[WIRE_OP_N] = {
        [WIRE_HELLO] = "hello",
        [WIRE_GENERATE] = "generate",
        [WIRE_CANCEL] = "cancel",
        [WIRE_TOKENIZE] = "tokenize",
        [WIRE_DETOKENIZE] = "detokenize",
        [WIRE_STATUS] = "status",
        [WIRE_TEMPLATE] = "template",
        [WIRE_OPEN] = "open",
        [WIRE_APPEND] = "append",
        [WIRE_TRUNCATE] = "truncate",
        [WIRE_FORK] = "fork",
        [WIRE_CLOSE] = "close",
        [WIRE_PIN] = "pin",
        [WIRE_ATTACH] = "attach",
        [WIRE_DETACH] = "detach",
        [WIRE_DROP] = "drop",
        [WIRE_PUBLISH] = "publish",
        [WIRE_REVOKE] = "revoke",
        [WIRE_LIST] = "list",
        [WIRE_POOL] = "pool",
        [WIRE_END] = "end",
        [WIRE_PIECES] = "pieces",
};

const char *wire_op_name(enum wire_op op)
{
        return op_names[op];
}

void wire_shown(char ret_shown[32], const char *name, size_t bytes)
{
        const uint8_t *s = (const uint8_t *)name;
        size_t used = 0;

        for (size_t at = 0; at < bytes;) {
                int length = utf8_character(name + at, bytes - at);
                size_t step = length > 0 ? (size_t)length : 0;
                bool c1 = step == 2 && s[at] == 0xc2 && s[at + 1] < 0xa0;
                bool plain = step && s[at] >= ' ' && s[at] != 0x7f && !c1;
                char piece[5];

                if (plain)
                        memcpy(piece, s + at, step);
                else
                        step = (size_t)snprintf(piece, sizeof(piece), "\\x%02x", s[at]);
                if (step > 31 - used)
                        break;
                memcpy(ret_shown + used, piece, step);
                used += step;
                at += plain ? step : 1;
        }
        ret_shown[used] = '\0';
}

int wire_refuse(struct wire_problem *ret_problem, enum smv_code code, uint32_t id,
                const char *field, const char *format, ...)
{
        va_list values;

        *ret_problem = (struct wire_problem){ .code = code, .id = id };
        if (field)
                wire_shown(ret_problem->field, field, strlen(field));
        va_start(values, format);
        vsnprintf(ret_problem->message, sizeof(ret_problem->message), format, values);
        va_end(values);
        return WIRE_E_REFUSED;
}
