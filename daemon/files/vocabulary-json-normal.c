/* The normalizer of tokenizer.json. */
#include "daemon/files/vocabulary-json-parts.h"

int json_tokenizer_normaliser(struct json_tokenizer *rd)
{
        uint32_t part = json_tokenizer_member(rd, 0, "normalizer"), step;
        struct json_steps steps = json_tokenizer_steps(rd, part, "normalizers");

        while ((step = json_tokenizer_step(rd, &steps)) != JSON_NONE) {
                if (rd->letters && json_tokenizer_is(rd, step, "NFC"))
                        rd->m.v.normaliser = NORMALISER_NFC;
                else if (!rd->letters && !rd->bars && json_tokenizer_is(rd, step, "Prepend") &&
                         json_tokenizer_says(rd, step, "prepend", BAR))
                        rd->m.v.blank = BLANK_EACH;
                else if (!rd->letters && json_tokenizer_replaces(rd, step, " ", BAR))
                        rd->bars = true;
                else
                        return json_tokenizer_refuse(rd, "normalizer", step);
        }
        if (!rd->bars && rd->m.v.blank)
                return vocabulary_builder_refuse(&rd->m,
                                                 "its normalizer does not replace blanks by bars");
        return 0;
}
