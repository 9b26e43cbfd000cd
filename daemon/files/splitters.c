/*
 * The expressions are those of the models' own tokenizers.  Most are built of the same parts:
 * contractions, words, numbers, signs, and blanks, of which the last one belongs to the next word.
 */
#include "daemon/files/splitters.h"

#include <string.h>

#define SUFFIXES "'s|'t|'re|'ve|'m|'ll|'d"
#define ANY_CASE "(?i:" SUFFIXES ")"
#define BLANKS   "\\s+(?!\\S)|\\s+"
#define LINES    "\\s*[\\r\\n]+|" BLANKS

#define GPT2 SUFFIXES "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" BLANKS

/* Llama 3's, with other numbers. */
#define LLAMA(numbers)                                                                             \
        ANY_CASE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "| "                                    \
                 "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES

/* GPT-4o's: a word is capitals and then small letters. */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define GPT4O(suffixes, numbers)                                                                   \
        "[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "*" SMALL "+" suffixes                                   \
        "|[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "+" SMALL "*" suffixes "|" numbers                      \
        "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES

/* DeepSeek V3's third stage. */
#define ASCII_SIGNS     "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define DEEPSEEK(signs) ASCII_SIGNS "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" signs

#define HAN_AND_KANA "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
#define BLOOM        " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

/* Letters with case, in the ranges that DeepSeek LLM's file lists. */
#define CASED                                                                                      \
        "\\s?[A-Za-z\\u00b5\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u01ba\\u01bc-\\u01bf"           \
        "\\u01c4-\\u0293\\u0295-\\u02af\\u0370-\\u0373\\u0376\\u0377\\u037b-\\u037d\\u037f"        \
        "\\u0386\\u0388-\\u038a\\u038c\\u038e-\\u03a1\\u03a3-\\u03f5\\u03f7-\\u0481"               \
        "\\u048a-\\u052f\\u0531-\\u0556\\u10a0-\\u10c5\\u13a0-\\u13f5\\u13f8-\\u13fd"              \
        "\\u1c90-\\u1cba\\u1cbd-\\u1cbf\\u1d00-\\u1d2b\\u1d6b-\\u1d77\\u1d79-\\u1d9a"              \
        "\\u1e00-\\u1f15\\u1f18-\\u1f1d\\u1f20-\\u1f45\\u1f48-\\u1f4d\\u1f50-\\u1f57\\u1f59"       \
        "\\u1f5b\\u1f5d\\u1f5f-\\u1f7d\\u1f80-\\u1fb4\\u1fb6-\\u1fbc\\u1fbe\\u1fc2-\\u1fc4"        \
        "\\u1fc6-\\u1fcc\\u1fd0-\\u1fd3\\u1fd6-\\u1fdb\\u1fe0-\\u1fec\\u1ff2-\\u1ff4"              \
        "\\u1ff6-\\u1ffc\\u2102\\u2107\\u210a-\\u2113\\u2115\\u2119-\\u211d\\u2124\\u2126"         \
        "\\u2128\\u212a-\\u212d\\u212f-\\u2134\\u2139\\u213c-\\u213f\\u2145-\\u2149\\u214e"        \
        "\\u2183\\u2184\\u2c00-\\u2c7b\\u2c7e-\\u2ce4\\u2ceb-\\u2cee\\u2cf2\\u2cf3"                \
        "\\ua640-\\ua66d\\ua680-\\ua69b\\ua722-\\ua76f\\ua771-\\ua787\\ua78b-\\ua78e"              \
        "\\uab70-\\uabbf\\ufb00-\\ufb06\\ufb13-\\ufb17\\uff21-\\uff3a\\uff41-\\uff5a"              \
        "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}"     \
        "\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}]+"

#define NAMES(...)                                                                                 \
        (const char *const[])                                                                      \
        {                                                                                          \
                __VA_ARGS__, NULL                                                                  \
        }
#define CUTS(...)                                                                                  \
        (const struct vocabulary_cut[]){ __VA_ARGS__ },                                            \
                sizeof((const struct vocabulary_cut[]){ __VA_ARGS__ }) /                           \
                        sizeof(struct vocabulary_cut)
#define APART(expression)                                                                          \
        {                                                                                          \
                expression, CUT_APART, false                                                       \
        }

static const struct splitter splitters[] = {
        { NAMES("none"), NULL, 0, false, false },
        { NAMES("gpt2", "gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling",
                "exaone4", "modern-bert", "roberta-bpe", "jina-es", "jina-de", "jina-v2-es",
                "jina-v2-de", "jina-v1-en", "jina-v2-code", "gigachat", "a.x-4.0", "mellum"),
          CUTS(APART(GPT2)), false, false },
        { NAMES("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                "lfm2", "jina-v5-nano"),
          CUTS(APART(LLAMA("\\p{N}{1,3}"))), true, true },
        { NAMES("glm4", "glm5"), CUTS(APART(LLAMA("\\p{N}{1,3}"))), true, false },
        { NAMES("chatglm-bpe", "dbrx", "smaug-bpe"), CUTS(APART(LLAMA("\\p{N}{1,3}"))), false,
          false },
        { NAMES("qwen2", "deepseek-r1-qwen", "hunyuan", "stablelm2", "megrez", "kormo", "f2llmv2",
                "solar-open", "grok-2"),
          CUTS(APART(LLAMA("\\p{N}"))), false, false },
        { NAMES("qwen35"),
          CUTS(APART(ANY_CASE "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
                              "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES)),
          false, false },
        { NAMES("ufakzeka"),
          CUTS(APART("[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES)),
          false, false },
        { NAMES("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"),
          CUTS(APART(GPT4O(ANY_CASE "?", "\\p{N}{1,3}"))), false, false },
        { NAMES("granite-embed-multi-97m"), CUTS(APART(GPT4O(ANY_CASE "?", "\\p{N}{1,3}"))), true,
          false },
        { NAMES("tekken"), CUTS(APART(GPT4O("", "\\p{N}"))), true, true },
        { NAMES("youtu"),
          CUTS(APART("[\uac00-\ud7a3\u3131-\u318e]+"
                     "|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f"
                     "\ufe30-\ufe4f]+|[\u3105-\u312f]+|" HAN_AND_KANA),
               APART(GPT4O(ANY_CASE "?", "\\p{N}"))),
          true, false },
        { NAMES("tiny_aya", "cohere2moe"),
          CUTS(APART("\\d{1,3}(?=(?:\\d{3})*\\b)"), APART(GPT4O(ANY_CASE "?", "\\p{N}{1,3}"))),
          false, false },
        { NAMES("kimi-k2"),
          CUTS(APART("[\\p{Han}]+"
                     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*"
                     "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+" ANY_CASE "?"
                     "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+"
                     "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*" ANY_CASE "?"
                     "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES)),
          false, false },
        { NAMES("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b",
                "mellum2"),
          CUTS(APART("\\p{N}"), APART(GPT2)), false, false },
        { NAMES("falcon"),
          CUTS(APART("[\\p{P}\\$\\+<=>\\^~\\|`]+"), APART(GPT2), APART("[0-9][0-9][0-9]")), false,
          false },
        { NAMES("deepseek-llm"),
          CUTS(APART("[\r\n]"), APART(CASED),
               APART("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
               APART("\\s+$"), APART("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
               APART("\\p{N}+")),
          false, false },
        { NAMES("deepseek-coder"),
          CUTS(APART("[\r\n]"), APART("\\s?\\p{L}+"), APART("\\s?\\p{P}+"),
               APART("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), APART("\\p{N}")),
          false, false },
        { NAMES("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"),
          CUTS(APART("\\p{N}{1,3}"), APART(HAN_AND_KANA),
               APART(DEEPSEEK(" ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES))),
          false, false },
        { NAMES("spark2_5"),
          CUTS(APART("\\p{N}{1,3}"), APART(HAN_AND_KANA),
               APART(DEEPSEEK(" ?[\\p{P}\\p{S}]+|[\\r\\n]|" BLANKS)), APART("\\p{N}")),
          false, false },
        { NAMES("bloom", "poro-chat", "gpt3-finnish"), CUTS(APART(BLOOM)), false, false },
        { NAMES("viking"), CUTS(APART(BLOOM), APART("\\p{N}")), false, false },
        { NAMES("jais-2"),
          CUTS(APART(ANY_CASE
                     "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                     "|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)"
                     "|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)"
                     "|\\s{1}")),
          false, false },
        { NAMES("chameleon"),
          CUTS(APART("<sentinel:[0-9]+>"), APART("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
               APART("([\\t\\n]|    |  )"), APART("\\p{N}"), APART("[\\p{P}!-/:-@\\[-`{-~]"),
               APART(GPT2)),
          false, true },
        { NAMES("superbpe"), CUTS(APART("\\p{N}+"), APART("(?=(\\d{3})+(?!\\d))")), false, false },
        { NAMES("bailingmoe", "bailingmoe2", "llada-moe"),
          CUTS(APART("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}"
                     "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|" BLANKS)),
          false, false },
        { NAMES("seed-coder"),
          CUTS(APART(ANY_CASE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}"
                              "| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES)),
          false, false },
        { NAMES("laguna"), CUTS(APART("[^\\n]+|[\\n]+"), APART(LLAMA("\\p{N}"))), false, false },
        { NAMES("exaone-moe"),
          CUTS(APART(ANY_CASE "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}"
                              "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|" BLANKS)),
          false, false },
        { NAMES("minicpm5"), CUTS(APART("\\p{N}{1,3}"), APART(LLAMA("\\p{N}+"))), true, false },
};

const struct splitter *splitter_named(const char *name)
{
        for (size_t i = 0; i < sizeof(splitters) / sizeof(*splitters); i++)
                for (const char *const *known = splitters[i].names; *known; known++)
                        if (!strcmp(*known, name))
                                return &splitters[i];
        return NULL;
}

static bool same(const struct splitter *splitter, const struct vocabulary_cut *cuts, uint32_t count)
{
        if (splitter->cut_count != count)
                return false;
        for (uint32_t i = 0; i < count; i++)
                if (splitter->cuts[i].kind != cuts[i].kind ||
                    splitter->cuts[i].inverted != cuts[i].inverted ||
                    strcmp(splitter->cuts[i].expression, cuts[i].expression))
                        return false;
        return true;
}

const char *splitter_name_of(const struct vocabulary_cut *cuts, uint32_t count)
{
        for (size_t i = 0; i < sizeof(splitters) / sizeof(*splitters); i++)
                if (same(&splitters[i], cuts, count))
                        return splitters[i].names[0];
        return NULL;
}
