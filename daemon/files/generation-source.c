#include "daemon/files/generation-source.h"

#include <math.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <string.h>

#include "daemon/files/file.h"

#define CONFIG           "generation_config.json"
#define CONFIG_BYTES_MAX (1u << 20)
#define CONFIG_NODES_MAX (1u << 16)
#define TOP_P_LEAST      1e-6 /* 0 would leave no token */

struct reader {
        const struct gguf *gguf; /* one of the two is NULL */
        const struct json_document *json;
        struct sampling_defaults *to;
        struct traits *traits;
        char *left_out;
        size_t bytes, used;
        unsigned count;
};

/* A sampler that changes nothing has this value, so it is no loss. */
static const struct {
        const char *gguf, *json;
        double neutral;
} not_served[] = {
        { "general.sampling.penalty_repeat", "repetition_penalty", 1 },
        { "general.sampling.xtc_probability", NULL, 0 },
        { "general.sampling.mirostat", NULL, 0 },
        { NULL, "typical_p", 1 },
        { NULL, "no_repeat_ngram_size", 0 },
};

static void leave_out(struct reader *rd, const char *key)
{
        int n = snprintf(rd->left_out + rd->used, rd->bytes - rd->used, "%s%s",
                         rd->count ? "," : "", key);

        rd->used += n > 0 && (size_t)n < rd->bytes - rd->used ? (size_t)n : 0;
        rd->left_out[rd->used] = '\0';
        rd->count++;
}

/* False: the files do not have the key, or it is left out because it is not a number. */
static bool read_number(struct reader *rd, const char *gguf, const char *json, double *ret_value)
{
        const char *key = rd->gguf ? gguf : json;
        uint32_t node;

        if (!key)
                return false;
        if (rd->gguf) {
                if (!gguf_has(rd->gguf, key))
                        return false;
                if (gguf_number(rd->gguf, key, ret_value))
                        return true;
        } else {
                node = json_member(rd->json, 0, key);
                if (json_kind(rd->json, node) == JSON_ABSENT ||
                    json_kind(rd->json, node) == JSON_NULL)
                        return false;
                if (json_real(rd->json, node, ret_value))
                        return true;
        }
        leave_out(rd, key);
        return false;
}

static void read_real(struct reader *rd, const char *gguf, const char *json, double low,
                      double high, float *to)
{
        double value;

        if (!read_number(rd, gguf, json, &value))
                return;
        if (value >= low && value <= high)
                *to = (float)value;
        else
                leave_out(rd, rd->gguf ? gguf : json);
}

/* 0 and less are all tokens; llama.cpp and transformers write both. */
static void read_top_k(struct reader *rd)
{
        double value;

        if (!read_number(rd, "general.sampling.top_k", "top_k", &value))
                return;
        if (value <= 0)
                rd->to->top_k = 0;
        else if (value == floor(value) && value <= SMV_TOP_K_MAX)
                rd->to->top_k = (uint32_t)value;
        else
                leave_out(rd, rd->gguf ? "general.sampling.top_k" : "top_k");
}

static void read_all(struct reader *rd)
{
        double value;

        read_real(rd, "general.sampling.temp", "temperature", 0, SMV_TEMPERATURE_MAX,
                  &rd->to->temperature);
        read_real(rd, "general.sampling.top_p", "top_p", TOP_P_LEAST, 1, &rd->to->top_p);
        read_real(rd, "general.sampling.min_p", "min_p", 0, 1, &rd->to->min_p);
        read_top_k(rd);
        for (size_t i = 0; i < sizeof(not_served) / sizeof(*not_served); i++)
                if (read_number(rd, not_served[i].gguf, not_served[i].json, &value) &&
                    value != not_served[i].neutral)
                        leave_out(rd, rd->gguf ? not_served[i].gguf : not_served[i].json);
}

/* ---- generation_config.json ---- */

static void add_end(struct reader *rd, uint32_t node)
{
        struct traits *traits = rd->traits;
        uint64_t id;

        if (!json_whole(rd->json, node, &id) || id >= traits->vocab) {
                leave_out(rd, "eos_token_id");
                return;
        }
        for (uint32_t i = 0; i < traits->eos_count; i++)
                if (traits->eos[i] == id)
                        return;
        if (traits->eos_count == TRAITS_EOS_MAX)
                leave_out(rd, "eos_token_id");
        else
                traits->eos[traits->eos_count++] = (uint32_t)id;
}

static void read_ends(struct reader *rd)
{
        uint32_t node = json_member(rd->json, 0, "eos_token_id");
        enum json_kind kind = json_kind(rd->json, node);

        if (kind == JSON_ABSENT || kind == JSON_NULL)
                return;
        if (kind != JSON_ARRAY) {
                add_end(rd, node);
                return;
        }
        for (node = json_first(rd->json, node); node != JSON_NONE; node = json_next(rd->json, node))
                add_end(rd, node);
}

static void read_config(struct reader *rd)
{
        bool samples = true;

        read_all(rd);
        if (json_bool(rd->json, json_member(rd->json, 0, "do_sample"), &samples) && !samples)
                rd->to->temperature = 0;
        read_ends(rd);
}

unsigned generation_source_read(const struct checkpoint *checkpoint,
                                struct sampling_defaults *defaults, struct traits *traits,
                                char *ret_left_out, size_t bytes)
{
        struct reader rd = { .gguf = checkpoint_gguf(checkpoint),
                             .to = defaults,
                             .traits = traits,
                             .left_out = ret_left_out,
                             .bytes = bytes };
        struct json_document *json = NULL;
        char why[256];
        int r;

        *ret_left_out = '\0';
        if (rd.gguf) {
                read_all(&rd);
                return rd.count;
        }
        r = file_read_json(checkpoint_folder(checkpoint), CONFIG, CONFIG_BYTES_MAX,
                           CONFIG_NODES_MAX, &json, why, sizeof(why));
        if (r == FILE_E_ABSENT)
                return 0;
        if (r || json_kind(json, 0) != JSON_OBJECT) {
                leave_out(&rd, CONFIG);
        } else {
                rd.json = json;
                read_config(&rd);
        }
        json_free(json);
        return rd.count;
}
