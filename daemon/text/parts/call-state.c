#include "daemon/text/parts/call-state.h"

#include <string.h>

#define PREFIX "functions."

enum call_outcome call_take(struct parts *parts, uint8_t byte, enum call_at next)
{
        parts_hold(parts, byte);
        parts->call.at = (uint8_t)next;
        return CALL_MORE;
}

/* The name in "functions.NAME:3", of which either end may be missing. */
static const char *plain_name(const char *name, size_t *bytes)
{
        size_t prefix = strlen(PREFIX), end = *bytes;

        if (end > prefix && !memcmp(name, PREFIX, prefix)) {
                name += prefix;
                end = *bytes -= prefix;
        }
        while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
                end--;
        if (end > 1 && end < *bytes && name[end - 1] == ':')
                *bytes = end - 1;
        return name;
}

void call_put_name(struct parts *parts, struct parts_out *out)
{
        size_t bytes = parts->call.name_bytes;
        const char *name = parts->call.name;

        if (parts->dialect->traits & DIALECT_NUMBERED)
                name = plain_name(name, &bytes);
        parts->call.begun = true;
        parts->call_count++;
        parts_put(parts, out, SMV_PART_CALL, 0, name, bytes);
}

void call_put_json(struct parts *parts, struct parts_out *out, const char *json, size_t bytes)
{
        struct json_scan scan;

        json_scan_begin(&scan);
        for (size_t i = 0; i < bytes; i++) {
                if (json_scan_in_string(&scan))
                        parts_put_string(parts, out, (uint8_t)json[i]);
                else
                        parts_put(parts, out, SMV_PART_ARGUMENTS, 0, json + i, 1);
                (void)json_scan_feed(&scan, (uint8_t)json[i]);
        }
}

enum call_outcome call_pass_argument(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        bool in_string = json_scan_in_string(&parts->scan);
        enum json_scan_outcome outcome = json_scan_feed(&parts->scan, byte);

        if (outcome == JSON_SCAN_BAD)
                return CALL_BAD;
        if (in_string)
                parts_put_string(parts, out, byte);
        else
                parts_put(parts, out, SMV_PART_ARGUMENTS, 0, (const char *)&byte, 1);
        if (outcome != JSON_SCAN_DONE)
                return CALL_MORE;
        parts_put_call_end(parts, out, 0);
        parts->call.passed_on = true;
        parts->call.at = NEXT;
        return parts->dialect->shape == SHAPE_NAMED || parts->dialect->shape == SHAPE_CHANNELS
                       ? CALL_WHOLE
                       : CALL_MORE;
}

enum call_outcome call_pass_first_argument(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        call_put_name(parts, out);
        parts_drop(parts);
        json_scan_begin(&parts->scan);
        parts->call.at = ARGUMENTS;
        return call_pass_argument(parts, byte, out);
}
