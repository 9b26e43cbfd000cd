/* inspect --json: one object.  A part is left out if the look did not come as far. */
#include <string.h>

#include "base/error.h"
#include "daemon/start/inspection.h"
#include "daemon/text/chat.h"
#include "json/writer.h"

static void put_text(struct json_writer *json, const char *before, const char *text)
{
        json_write_raw(json, before);
        json_write_text(json, text, strlen(text));
}

static void put_number(struct json_writer *json, const char *before, uint64_t number)
{
        json_write_raw(json, before);
        json_write_uint(json, number);
}

static void put_switch(struct json_writer *json, const char *before, bool on)
{
        json_write_raw(json, before);
        json_write_raw(json, on ? "true" : "false");
}

static void put_file(struct json_writer *json, const struct model_setup *setup)
{
        const struct tensor_table *table = checkpoint_tensors(setup->checkpoint);
        struct type_bytes types = inspection_types(table);
        const char *between = "";

        put_text(json, ",\"file\":{\"format\":",
                 checkpoint_gguf(setup->checkpoint) ? "GGUF" : "safetensors");
        put_text(json, ",\"architecture\":", inspection_architecture(setup));
        put_number(json, ",\"tensors\":", table->count);
        put_number(json, ",\"tensors_not_taken\":", types.others);
        put_text(json, ",\"quantisation\":", setup->served.quantisation);
        json_write_raw(json, ",\"types\":{");
        for (unsigned type = 0; type < ROW_TYPE_N; type++) {
                if (!types.bytes[type])
                        continue;
                put_text(json, between, row_type_name((enum row_type)type));
                put_number(json, ":", types.bytes[type]);
                between = ",";
        }
        json_write_raw(json, "}}");
}

static void put_model(struct json_writer *json, const struct inspection *inspection)
{
        const struct traits *t = &inspection->setup->served.traits;

        put_number(json, ",\"model\":{\"parameters\":", inspection->parameters);
        put_number(json, ",\"layers\":", t->layers);
        put_number(json, ",\"width\":", t->width);
        put_number(json, ",\"heads\":", t->heads);
        put_number(json, ",\"kv_heads\":", t->kv_heads);
        put_number(json, ",\"head_dim\":", t->head_dim);
        put_number(json, ",\"ffn\":", t->ffn);
        put_number(json, ",\"vocab\":", t->vocab);
        put_number(json, ",\"context\":", t->context);
        put_switch(json, ",\"tied\":", t->tied);
        json_write_raw(json, "}");
}

static void put_tokenizer(struct json_writer *json, const struct model_setup *setup)
{
        const char *missing = chat_refusal(setup->served.chat);

        put_text(json, ",\"tokenizer\":{\"kind\":", inspection_tokenizers[setup->kind]);
        if (*setup->split)
                put_text(json, ",\"split\":", setup->split);
        put_number(json, ",\"entries\":", setup->entries);
        put_switch(json, "},\"chat\":", !missing);
        if (missing)
                put_text(json, ",\"chat_why\":", missing);
        put_text(json, ",\"tool_dialect\":", setup->dialect.name);
        put_text(json, ",\"tool_dialect_by\":", setup->served.dialect_by);
}

static void put_memory(struct json_writer *json, const struct inspection *inspection)
{
        const struct model_setup *setup = inspection->setup;
        const struct config *config = setup->config;

        put_number(json, ",\"memory\":{\"weights\":", setup->bytes.weights);
        put_number(json, ",\"activations\":", setup->bytes.activations);
        put_number(json, ",\"drafts\":", inspection_drafts(setup));
        put_number(json, ",\"kv\":", setup->bytes.kv);
        put_number(json, ",\"swap\":", setup->host.swap);
        put_number(json, ",\"rings_at_most\":", config->ring_bytes * config->connections);
        json_write_raw(json, ",\"sequences\":");
        json_write_float(json, (double)setup->bytes.kv / (double)inspection->sequence);
        json_write_raw(json, "}");
}

static void put_recipes(struct json_writer *json, const struct inspection *inspection)
{
        put_number(json, ",\"available_bytes\":", inspection->memory);
        put_number(json, ",\"context\":", inspection->context);
        put_number(json, ",\"kv_of_context\":", inspection->sequence);
        json_write_raw(json, ",\"quantised\":[");
        for (uint32_t i = 0; i < WEIGHT_RECIPES; i++) {
                json_write_raw(json, i ? "," : "");
                put_text(json, "{\"name\":", weight_recipe_name(i));
                put_number(json, ",\"weights\":", inspection->recipes[i]);
                put_number(json, ",\"needs\":", inspection_needs(inspection, i));
                put_switch(json, ",\"fits\":", inspection_fits(inspection, i));
                put_number(json, ",\"positions\":", inspection_positions(inspection, i));
                json_write_raw(json, "}");
        }
        json_write_raw(json, "]");
}

int inspection_print_json(const struct inspection *inspection, FILE *to)
{
        const struct model_setup *setup = inspection->setup;
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        int r;

        put_text(&json, "{\"path\":", setup->path);
        put_switch(&json, ",\"served\":", !inspection->result);
        if (inspection->result)
                put_text(&json, ",\"why\":", inspection_why(inspection));
        if (inspection->step >= INSPECTED_FILES) {
                put_text(&json, ",\"name\":", setup->served.name);
                put_file(&json, setup);
        }
        if (inspection->step >= INSPECTED_TRAITS)
                put_model(&json, inspection);
        if (inspection->step >= INSPECTED_TEXT)
                put_tokenizer(&json, setup);
        if (inspection->step >= INSPECTED_ALL)
                put_memory(&json, inspection);
        if (inspection->step >= INSPECTED_TRAITS)
                put_recipes(&json, inspection);
        json_write_raw(&json, "}\n");
        r = json_write_end(&json);
        if (!r)
                fputs(out.at, to);
        bytes_deinit(&out);
        return r ? error_raise(r) : 0;
}
