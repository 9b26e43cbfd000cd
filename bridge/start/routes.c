#include "bridge/start/routes.h"

#include "bridge/openai/chat.h"
#include "bridge/openai/completions.h"
#include "bridge/openai/models.h"
#include "bridge/openai/responses.h"
#include "bridge/own/health.h"
#include "bridge/own/texts.h"

/* clang-format off */
const struct route routes[] = {
        { HTTP_GET,  "/",                    own_root, 0 },
        { HTTP_GET,  "/health",              own_health, 0 },
        { HTTP_GET,  "/metrics",             own_metrics, 0 },

        { HTTP_GET,  "/v1/models",           openai_models, 0 },
        { HTTP_GET,  "/v1/models/{}",        openai_model, 0 },
        { HTTP_POST, "/v1/chat/completions", openai_chat, 0 },
        { HTTP_POST, "/v1/completions",      openai_completions, 0 },

        { HTTP_POST, "/v1/embeddings",       openai_embeddings, 0 },
        { HTTP_POST, "/v1/responses",        openai_responses, 0 },
        { HTTP_POST, "/v1/responses/input_tokens", openai_response_tokens, 0 },
        { HTTP_GET,  "/v1/responses/{}/input_items", openai_response_input_items, 0 },
        { HTTP_POST, "/v1/responses/{}/cancel", openai_response_cancel, 0 },
        { HTTP_GET,  "/v1/responses/{}",     openai_response_get, 0 },
        { HTTP_DELETE, "/v1/responses/{}",   openai_response_delete, 0 },

        { HTTP_POST, "/tokenize",            own_tokenize, 0 },
        { HTTP_POST, "/detokenize",          own_detokenize, 0 },
        { HTTP_POST, "/apply-template",      own_apply_template, 0 },
};
/* clang-format on */

const uint32_t route_count = sizeof(routes) / sizeof(*routes);
