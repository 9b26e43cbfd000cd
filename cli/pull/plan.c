#include "cli/pull/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/amounts.h"
#include "cli/cli.h"
#include "json/builder.h"

struct page {
        struct bytes text;
        bool failed;
};

__attribute__((format(printf, 2, 3))) static void put(struct page *page, const char *format, ...)
{
        char line[1600];
        va_list args;

        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        page->failed |= bytes_add(&page->text, line, strlen(line));
}

/* "fits", "fits with 8192 positions", "does not fit" */
static void put_fit(struct page *page, const struct verdict *verdict, uint64_t weights)
{
        uint64_t positions;

        switch (verdict_fit(verdict, weights, &positions)) {
        case FIT_WHOLE:
                put(page, "fits");
                break;
        case FIT_SHORTER:
                put(page, "fits with %" PRIu64 " positions", positions);
                break;
        case FIT_NOT:
                put(page, "does not fit");
                break;
        }
}

static void put_files(struct page *page, const struct plan *plan)
{
        char size[AMOUNT_BYTES];

        for (size_t i = 0; i < plan->file_count; i++)
                put(page, "%-11s %-44s %10s\n", i ? "" : "files", plan->files[i].name,
                    plan->files[i].size_known ? amount_bytes((double)plan->files[i].bytes, size)
                                              : "?");
        if (plan->choice->form == CHOICE_PIECES)
                put(page, "%-11s the pieces are joined to %s\n", "", plan->choice->model);
        if (plan->bytes)
                put(page, "%-11s %s", "size", amount_bytes((double)plan->bytes, size));
        else
                put(page, "%-11s not known", "size");
        if (plan->free_bytes != UINT64_MAX)
                put(page, "; %s are free in %s", amount_bytes((double)plan->free_bytes, size),
                    plan->place);
        put(page, "\n");
}

static void put_memory(struct page *page, const struct verdict *verdict)
{
        char weights[AMOUNT_BYTES], activations[AMOUNT_BYTES], drafts[AMOUNT_BYTES],
                kv[AMOUNT_BYTES], available[AMOUNT_BYTES];

        if (!verdict->measured)
                return;
        put(page,
            "%-11s weights %s, activations %s, drafts %s, KV of one sequence of %" PRIu64
            " positions %s\n",
            "memory", amount_bytes((double)verdict->weights, weights),
            amount_bytes((double)verdict->activations, activations),
            amount_bytes((double)verdict->drafts, drafts), verdict->context,
            amount_bytes((double)verdict->sequence, kv));
        put(page, "%-11s ", "here");
        put_fit(page, verdict, verdict->weights);
        put(page, " in the %s that samovard may have\n",
            amount_bytes((double)verdict->available, available));
}

/* The bytes of a model of the repository: of its file, or of all pieces of it; 0: it is none. */
static uint64_t model_bytes(const struct listing *listing, size_t index)
{
        const char *path = listing->files[index].path;
        unsigned number, count, other;
        uint64_t bytes = 0;
        size_t stem, length;

        if (!is_gguf_model(path))
                return 0;
        if (!is_gguf_piece(path, &number, &count, &stem))
                return listing->files[index].bytes;
        for (size_t i = 0; i < listing->count && number == 1; i++) {
                const char *piece = listing->files[i].path;

                if (is_gguf_piece(piece, &other, &count, &length) && length == stem &&
                    !strncmp(piece, path, stem))
                        bytes += listing->files[i].bytes;
        }
        return bytes;
}

static void put_others(struct page *page, const struct plan *plan)
{
        const char *between = "";
        char own[32], size[AMOUNT_BYTES];

        if (!plan->listing || plan->choice->form == CHOICE_FOLDER || !plan->verdict->measured)
                return;
        for (size_t i = 0; i < plan->listing->count; i++) {
                uint64_t bytes = model_bytes(plan->listing, i);

                quantisation_of(plan->listing->files[i].path, own);
                if (!bytes || i == plan->choice->files[0])
                        continue;
                if (!*between)
                        put(page, "%-11s ", "others");
                put(page, "%s%s %s ", between, *own ? own : plan->listing->files[i].path,
                    amount_bytes((double)bytes, size));
                put_fit(page, plan->verdict, bytes);
                between = ", ";
        }
        if (*between)
                put(page, "\n");
}

int plan_print(const struct plan *plan)
{
        const struct verdict *verdict = plan->verdict;
        struct page page = { 0 };
        struct screen screen;
        int r;

        put(&page, "%-11s %s%s%s\n", "source", plan->source, *plan->revision ? ", commit " : "",
            plan->revision);
        put(&page, "%-11s %s\n", "name", plan->name);
        put_files(&page, plan);
        put_memory(&page, verdict);
        if (verdict->known)
                put(&page, "%-11s %s%s%s\n", "served", verdict->served ? "yes" : "no",
                    verdict->served ? "" : ": ", verdict->served ? "" : verdict->why);
        else
                put(&page, "%-11s not known before it is there\n", "served");
        put_others(&page, plan);
        if (page.failed) {
                say("out of memory");
                r = CLI_FAILED;
        } else {
                screen_open(&screen, STDOUT_FILENO);
                r = screen_text(&screen, page.text.at, page.text.count);
        }
        bytes_deinit(&page.text);
        return r;
}

static void put_json_verdict(struct json_builder *json, const struct verdict *verdict)
{
        uint64_t positions;

        if (!verdict->known)
                return;
        json_put_key_bool(json, "served", verdict->served);
        if (!verdict->served)
                json_put_key_word(json, "why", verdict->why);
        if (!verdict->measured)
                return;
        json_put_key_uint(json, "parameters", verdict->parameters);
        json_put_key_uint(json, "context", verdict->context);
        json_put_key_uint(json, "weights", verdict->weights);
        json_put_key_uint(json, "activations", verdict->activations);
        json_put_key_uint(json, "drafts", verdict->drafts);
        json_put_key_uint(json, "kv_of_context", verdict->sequence);
        json_put_key_uint(json, "available_bytes", verdict->available);
        json_put_key_bool(json, "fits",
                          verdict_fit(verdict, verdict->weights, &positions) == FIT_WHOLE);
        json_put_key_uint(json, "positions", positions);
}

int plan_print_json(const struct plan *plan)
{
        struct bytes text = { 0 };
        struct json_builder json = json_build(&text);
        int r;

        json_put_object(&json);
        json_put_key_word(&json, "source", plan->source);
        json_put_key_word(&json, "revision", plan->revision);
        json_put_key_word(&json, "name", plan->name);
        json_put_key_word(&json, "folder", plan->place);
        json_put_key_uint(&json, "bytes", plan->bytes);
        if (plan->free_bytes != UINT64_MAX)
                json_put_key_uint(&json, "free_bytes", plan->free_bytes);
        json_put_key(&json, "files");
        json_put_array(&json);
        for (size_t i = 0; i < plan->file_count; i++) {
                json_put_object(&json);
                json_put_key_word(&json, "name", plan->files[i].name);
                json_put_key_uint(&json, "bytes", plan->files[i].bytes);
                json_put_key_word(&json, "digest", plan->files[i].digest);
                json_put_object_end(&json);
        }
        json_put_array_end(&json);
        put_json_verdict(&json, plan->verdict);
        json_put_object_end(&json);
        r = json_put_end(&json);
        if (r)
                say("out of memory");
        r = r ? CLI_FAILED : screen_raw(text.at, text.count);
        bytes_deinit(&text);
        return r ? r : screen_raw("\n", 1);
}
