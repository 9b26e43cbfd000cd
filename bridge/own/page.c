#include "bridge/own/page.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define POLICY                                                                                     \
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "        \
        "script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "          \
        "require-trusted-types-for 'script'; trusted-types 'none'"

static const char *skip_blanks(const char *at)
{
        return at + strspn(at, " \t");
}

/* The parameters of a range of types, from the first ";" to the next ",".  Is there a q of 0? */
static bool is_refused(const char *at)
{
        while (*at == ';') {
                at = skip_blanks(at + 1);
                if (!strncasecmp(at, "q=", 2))
                        return strtod(at + 2, NULL) <= 0;
                at += strcspn(at, ";,");
        }
        return false;
}

bool page_is_wanted(const char *accept)
{
        static const char html[] = "text/html";

        while (accept && *accept) {
                const char *at = skip_blanks(accept);

                if (!strncasecmp(at, html, sizeof(html) - 1)) {
                        at = skip_blanks(at + sizeof(html) - 1);
                        if (!*at || *at == ',' || *at == ';')
                                return !is_refused(at);
                }
                accept = strchr(accept, ',');
                accept = accept ? accept + 1 : NULL;
        }
        return false;
}

/* A weak tag of the same file will do: for a GET, HTTP compares tags so. */
bool page_is_known(const char *if_none_match, const char *tag)
{
        const char *at = if_none_match;
        size_t bytes = strlen(tag);

        while (at && *at) {
                at = skip_blanks(at);
                if (*at == '*')
                        return true;
                if (!strncmp(at, "W/", 2))
                        at += 2;
                if (!strncmp(at, tag, bytes) && strchr(", \t", at[bytes]))
                        return true;
                at = strchr(at, ',');
                at = at ? at + 1 : NULL;
        }
        return false;
}

static void guard(struct call *call)
{
        call_header(call, "content-security-policy", POLICY);
        call_header(call, "x-content-type-options", "nosniff");
        call_header(call, "referrer-policy", "no-referrer");
        call_header(call, "cross-origin-opener-policy", "same-origin");
        call_header(call, "cross-origin-resource-policy", "same-origin");
}

static void reply_file(struct call *call, const struct page_file *file)
{
        guard(call);
        call_header(call, "cache-control", "no-cache");
        call_header(call, "etag", file->tag);
        if (page_is_known(call_request_header(call, "if-none-match"), file->tag))
                call_reply(call, 304, NULL, NULL, 0);
        else
                call_reply(call, 200, file->type, file->bytes, file->count);
}

static const struct page_file *find(const char *name, size_t bytes)
{
        for (size_t i = 0; i < page_file_count; i++)
                if (strlen(page_files[i].name) == bytes && !memcmp(page_files[i].name, name, bytes))
                        return &page_files[i];
        return NULL;
}

void own_root(struct call *call)
{
        static const char text[] = "Ollama is running: samovar-http answers in its place\n";
        static const char page[] = "index.html";

        call_header(call, "vary", "Accept");
        if (page_is_wanted(call_request_header(call, "accept")))
                reply_file(call, find(page, sizeof(page) - 1));
        else
                call_reply(call, 200, "text/plain; charset=utf-8", text, sizeof(text) - 1);
}

void own_page_file(struct call *call)
{
        const struct page_file *file = find(call->tail.at, call->tail.bytes);
        struct failure failure;

        if (file) {
                reply_file(call, file);
                return;
        }
        failure = failure_make(FAILURE_NOT_FOUND, NULL, "the page has no file %.*s",
                               (int)(call->tail.bytes < 60 ? call->tail.bytes : 60), call->tail.at);
        call_fail(call, &failure);
}
