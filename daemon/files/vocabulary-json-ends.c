/* The decoder and the post_processor of tokenizer.json. */
#include "daemon/files/vocabulary-json-parts.h"

/*
 * The blank in front, which Strip removes again, is handled by the caller: tokenizer_adds_blank().
 */
int json_tokenizer_decoder(struct json_tokenizer *rd)
{
        uint32_t part = json_tokenizer_member(rd, 0, "decoder"), step;
        struct json_steps steps = json_tokenizer_steps(rd, part, "decoders");
        bool bars = false;

        rd->letters = json_tokenizer_is(rd, part, "ByteLevel");
        while (!rd->letters && (step = json_tokenizer_step(rd, &steps)) != JSON_NONE) {
                bool meta = json_tokenizer_is(rd, step, "Metaspace") &&
                            json_tokenizer_says(rd, step, "replacement", BAR);

                bars = bars || meta || json_tokenizer_replaces(rd, step, BAR, " ");
                if (!meta && !json_tokenizer_replaces(rd, step, BAR, " ") &&
                    !json_tokenizer_is(rd, step, "ByteFallback") &&
                    !json_tokenizer_is(rd, step, "Fuse") &&
                    !(json_tokenizer_is(rd, step, "Strip") &&
                      json_tokenizer_says(rd, step, "content", " ")))
                        return json_tokenizer_refuse(rd, "decoder", step);
        }
        if (!rd->letters && !bars)
                return vocabulary_builder_refuse(
                        &rd->m, "its decoder is neither 'ByteLevel' nor one of bars");
        return 0;
}

/* A token may stand before the text; nothing may follow the text. */
static int read_template(struct json_tokenizer *rd, uint32_t node)
{
        uint32_t at = json_first(rd->json, json_tokenizer_member(rd, node, "single")), token, ids;
        const char *name;
        uint64_t id;

        token = json_tokenizer_member(rd, at, "SpecialToken");
        if (token != JSON_NONE) {
                name = json_string(rd->json, json_tokenizer_member(rd, token, "id"), NULL);
                ids = json_tokenizer_member(
                        rd,
                        json_tokenizer_member(rd, json_tokenizer_member(rd, node, "special_tokens"),
                                              name ? name : ""),
                        "ids");
                if (json_count(rd->json, ids) != 1 ||
                    !json_whole(rd->json, json_first(rd->json, ids), &id) ||
                    id >= rd->m.entry_capacity)
                        return json_tokenizer_refuse(rd, "post_processor", node);
                rd->m.v.bos = (uint32_t)id;
                rd->m.v.add_bos = true;
                at = json_next(rd->json, at);
        }
        if (json_tokenizer_member(rd, at, "Sequence") == JSON_NONE ||
            json_next(rd->json, at) != JSON_NONE)
                return json_tokenizer_refuse(rd, "post_processor", node);
        return 0;
}

int json_tokenizer_ends(struct json_tokenizer *rd)
{
        struct json_steps steps = json_tokenizer_steps(
                rd, json_tokenizer_member(rd, 0, "post_processor"), "processors");
        uint32_t step;
        int r = 0;

        while (!r && (step = json_tokenizer_step(rd, &steps)) != JSON_NONE) {
                if (json_tokenizer_is(rd, step, "TemplateProcessing"))
                        r = read_template(rd, step);
                else if (!json_tokenizer_is(rd, step, "ByteLevel"))
                        r = json_tokenizer_refuse(rd, "post_processor", step);
        }
        return error_pass(r);
}
