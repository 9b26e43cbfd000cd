#include "bridge/openai/batch-lines.h"

#include <stdio.h>
#include <string.h>

#include "bridge/core/fields.h"
#include "json/reader.h"

#define NODES_MAX       1000000u
#define CUSTOM_ID_BYTES 512u

static bool is_blank(struct text line)
{
        for (size_t i = 0; i < line.bytes; i++)
                if (!strchr(" \t\r", line.at[i]))
                        return false;
        return true;
}

bool batch_lines_next(struct batch_lines *lines, struct text *ret_line)
{
        while (lines->at < lines->text.bytes) {
                const char *from = lines->text.at + lines->at;
                size_t left = lines->text.bytes - lines->at;
                const char *end = memchr(from, '\n', left);
                size_t bytes = end ? (size_t)(end - from) : left;

                lines->at += bytes + (end != NULL);
                lines->number++;
                *ret_line = (struct text){ from, bytes };
                if (!is_blank(*ret_line))
                        return true;
        }
        return false;
}

const char *batch_endpoint(struct text name)
{
        static const char *const endpoints[] = { "/v1/chat/completions", "/v1/completions",
                                                 "/v1/responses" };

        for (size_t i = 0; i < sizeof(endpoints) / sizeof(*endpoints); i++)
                if (text_is(name, endpoints[i]))
                        return endpoints[i];
        return NULL;
}

/* The fault of a parsed line, or NULL. */
static const char *fault_of(const struct batch_line_request *request, const char *endpoint)
{
        const struct json_document *json = request->json;
        struct text method = text_of(json, json_member(json, 0, "method"));
        bool stream = false;

        if (json_kind(json, 0) != JSON_OBJECT)
                return "a line must be an object";
        if (!request->custom_id.bytes || request->custom_id.bytes > CUSTOM_ID_BYTES)
                return "custom_id must be a string of 1 to 512 bytes";
        if (!text_is(method, "POST"))
                return "method must be POST";
        if (endpoint && (!request->endpoint || strcmp(request->endpoint, endpoint)))
                return "url must be the endpoint of the batch";
        if (!request->endpoint)
                return "url must be " BATCH_ENDPOINTS;
        if (json_kind(json, request->body) != JSON_OBJECT)
                return "body must be an object";
        if (json_bool(json, json_member(json, request->body, "stream"), &stream) && stream)
                return "body.stream must not be true: the answers of a batch are whole";
        return NULL;
}

bool batch_line_read(struct text line, const char *endpoint, struct batch_line_request *ret_request,
                     char *why, size_t why_bytes)
{
        const char *fault;

        *ret_request = (struct batch_line_request){ 0 };
        if (json_parse(line.at, line.bytes, NODES_MAX, &ret_request->json, why, why_bytes))
                return false;
        ret_request->custom_id =
                text_of(ret_request->json, json_member(ret_request->json, 0, "custom_id"));
        ret_request->endpoint = batch_endpoint(
                text_of(ret_request->json, json_member(ret_request->json, 0, "url")));
        ret_request->body = json_member(ret_request->json, 0, "body");
        fault = fault_of(ret_request, endpoint);
        if (!fault)
                return true;
        snprintf(why, why_bytes, "%s", fault);
        ret_request->json = json_free(ret_request->json);
        return false;
}
