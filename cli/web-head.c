#include "cli/web-head.h"

#include <string.h>
#include <strings.h>

const char *web_field(const struct web_head *head, const char *name)
{
        const char *at = head->fields.at, *end = at + head->fields.count;

        while (at < end) {
                const char *value = at + strlen(at) + 1;

                if (!strcasecmp(at, name))
                        return value;
                at = value + strlen(value) + 1;
        }
        return NULL;
}

const char *web_url(const struct web_head *head)
{
        return head->url;
}

/* Adds "Name: value" to the head. */
static bool add_field(struct bytes *fields, const char *line, size_t bytes)
{
        const char *colon = memchr(line, ':', bytes), *value, *end = line + bytes;

        if (!colon || memchr(line, '\0', bytes))
                return true;
        for (value = colon + 1; value < end && (*value == ' ' || *value == '\t');)
                value++;
        while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
        return !bytes_add(fields, line, (size_t)(colon - line)) && !bytes_add(fields, "", 1) &&
               !bytes_add(fields, value, (size_t)(end - value)) && !bytes_add(fields, "", 1);
}

/* "HTTP/1.1 206 Partial Content" */
static int read_status(const char *line, size_t bytes)
{
        const char *at = memchr(line, ' ', bytes);
        int status = 0;

        for (at = at ? at + 1 : line; at < line + bytes && *at >= '0' && *at <= '9'; at++)
                status = status < 1000 ? status * 10 + (*at - '0') : status;
        return status;
}

bool web_head_add(struct web_head *head, const char *line, size_t bytes)
{
        head->bytes += bytes;
        head->too_long = head->bytes > WEB_HEAD_BYTES_MAX;
        if (head->too_long)
                return false;
        if (bytes <= 5 || strncasecmp(line, "HTTP/", 5))
                return add_field(&head->fields, line, bytes);
        head->fields.count = 0;
        head->status = read_status(line, bytes);
        return true;
}

bool web_head_redirects(const struct web_head *head)
{
        int status = head->status;

        return (status == 301 || status == 302 || status == 303 || status == 307 ||
                status == 308) &&
               web_field(head, "location");
}

void web_head_reset(struct web_head *head)
{
        head->fields.count = 0;
}

void web_head_deinit(struct web_head *head)
{
        bytes_deinit(&head->fields);
}
