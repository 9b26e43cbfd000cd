#include "bridge/openai/multipart.h"

#include <string.h>
#include <strings.h>

#define BOUNDARY_MAX 70u

static bool refuse(const char **ret_why, const char *why)
{
        *ret_why = why;
        return false;
}

/* The value of a parameter, `name="value"` or `name=value`, of a header. */
static struct text parameter(struct text header, const char *name)
{
        size_t length = strlen(name);

        for (size_t i = 0; i + length + 1 < header.bytes; i++) {
                const char *at = header.at + i;
                size_t left = header.bytes - i - length - 1, end = 0;

                if ((i && !strchr("; \t", at[-1])) || strncasecmp(at, name, length) ||
                    at[length] != '=')
                        continue;
                at += length + 1;
                if (*at == '"') {
                        const char *quote = memchr(at + 1, '"', left - 1);

                        return quote ? (struct text){ at + 1, (size_t)(quote - at - 1) }
                                     : (struct text){ 0 };
                }
                while (end < left && !strchr("; \t\r\n", at[end]))
                        end++;
                return (struct text){ at, end };
        }
        return (struct text){ 0 };
}

/* The header of this name in the headers of a part. */
static struct text header(struct text headers, const char *name)
{
        size_t length = strlen(name);

        while (headers.bytes) {
                const char *end = memmem(headers.at, headers.bytes, "\r\n", 2);
                size_t line = end ? (size_t)(end - headers.at) : headers.bytes;

                if (line > length && !strncasecmp(headers.at, name, length) &&
                    headers.at[length] == ':')
                        return (struct text){ headers.at + length + 1, line - length - 1 };
                line += end ? 2 : 0;
                headers.at += line;
                headers.bytes -= line;
        }
        return (struct text){ 0 };
}

/* A part begins behind the CRLF of its boundary, and ends before the CRLF of the next one. */
static bool read_part(struct text part, struct multipart *form, const char **ret_why)
{
        const char *blank = memmem(part.at, part.bytes, "\r\n\r\n", 4);
        struct multipart_part *to = &form->parts[form->count];
        struct text disposition;
        size_t headers;

        if (form->count == MULTIPART_PARTS_MAX)
                return refuse(ret_why, "the form has more than 16 parts");
        if (!blank)
                return refuse(ret_why, "a part of the form has no end of its headers");
        headers = (size_t)(blank - part.at);
        disposition = header((struct text){ part.at, headers + 2 }, "content-disposition");
        to->name = parameter(disposition, "name");
        to->filename = parameter(disposition, "filename");
        to->content = (struct text){ blank + 4, part.bytes - headers - 4 };
        if (!to->name.at)
                return refuse(ret_why, "a part of the form has no name");
        form->count++;
        return true;
}

bool multipart_read(const char *content_type, struct text body, struct multipart *ret_form,
                    const char **ret_why)
{
        char mark[BOUNDARY_MAX + 5] = "\r\n--";
        struct text boundary = { 0 };
        size_t bytes;
        const char *end;

        *ret_form = (struct multipart){ 0 };
        if (content_type && !strncasecmp(content_type, "multipart/form-data", 19))
                boundary =
                        parameter((struct text){ content_type, strlen(content_type) }, "boundary");
        if (!boundary.bytes || boundary.bytes > BOUNDARY_MAX)
                return refuse(ret_why, "the content type must be multipart/form-data with a "
                                       "boundary of 1 to 70 characters");
        memcpy(mark + 4, boundary.at, boundary.bytes);
        bytes = 4 + boundary.bytes;
        if (body.bytes < bytes - 2 || memcmp(body.at, mark + 2, bytes - 2))
                return refuse(ret_why, "the form does not begin with its boundary");
        body.at += bytes - 2;
        body.bytes -= bytes - 2;
        for (;;) {
                if (body.bytes >= 2 && !memcmp(body.at, "--", 2))
                        return true;
                if (body.bytes < 2 || memcmp(body.at, "\r\n", 2))
                        return refuse(ret_why, "a boundary of the form has no end of its line");
                end = memmem(body.at + 2, body.bytes - 2, mark, bytes);
                if (!end)
                        return refuse(ret_why, "the form has no last boundary");
                if (!read_part((struct text){ body.at + 2, (size_t)(end - body.at - 2) }, ret_form,
                               ret_why))
                        return false;
                body.bytes -= (size_t)(end - body.at) + bytes;
                body.at = end + bytes;
        }
}

const struct multipart_part *multipart_part(const struct multipart *form, const char *name)
{
        for (unsigned i = 0; i < form->count; i++)
                if (form->parts[i].name.bytes == strlen(name) &&
                    !memcmp(form->parts[i].name.at, name, strlen(name)))
                        return &form->parts[i];
        return NULL;
}
