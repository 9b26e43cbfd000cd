#include "bridge/start/routes.h"

#include "bridge/anthropic/messages.h"
#include "bridge/ollama/generate.h"
#include "bridge/ollama/models.h"
#include "bridge/ollama/refused.h"
#include "bridge/ollama/show.h"
#include "bridge/openai/batches.h"
#include "bridge/openai/chat.h"
#include "bridge/openai/completions.h"
#include "bridge/openai/files.h"
#include "bridge/openai/models.h"
#include "bridge/openai/responses.h"
#include "bridge/own/description.h"
#include "bridge/own/health.h"
#include "bridge/own/live.h"
#include "bridge/own/page.h"
#include "bridge/own/streams.h"
#include "bridge/own/texts.h"

/* clang-format off */
const struct route routes[] = {
        { HTTP_GET,  "/",                    own_root, 0 },
        { HTTP_GET,  "/page/{}",             own_page_file, 0 },
        { HTTP_GET,  "/health",              own_health, 0 },
        { HTTP_GET,  "/metrics",             own_metrics, 0 },
        { HTTP_GET,  "/openapi.json",        own_description, 0 },

        { HTTP_GET,  "/v1/models",           openai_models, 0 },
        { HTTP_GET,  "/v1/models/{}",        openai_model, 0 },
        { HTTP_POST, "/v1/chat/completions", openai_chat, 0 },
        { HTTP_POST, "/v1/completions",      openai_completions, 0 },

        { HTTP_POST, "/v1/files",            openai_file_upload, ROUTE_SPOOL },
        { HTTP_GET,  "/v1/files",            openai_file_list, 0 },
        { HTTP_GET,  "/v1/files/{}/content", openai_file_content, 0 },
        { HTTP_GET,  "/v1/files/{}",         openai_file_get, 0 },
        { HTTP_DELETE, "/v1/files/{}",       openai_file_delete, 0 },
        { HTTP_POST, "/v1/batches",          openai_batch_create, 0 },
        { HTTP_GET,  "/v1/batches",          openai_batch_list, 0 },
        { HTTP_POST, "/v1/batches/{}/cancel", openai_batch_cancel, 0 },
        { HTTP_GET,  "/v1/batches/{}",       openai_batch_get, 0 },
        { HTTP_POST, "/v1/embeddings",       openai_embeddings, 0 },
        { HTTP_POST, "/v1/responses",        openai_responses, 0 },
        { HTTP_POST, "/v1/responses/input_tokens", openai_response_tokens, 0 },
        { HTTP_GET,  "/v1/responses/{}/input_items", openai_response_input_items, 0 },
        { HTTP_POST, "/v1/responses/{}/cancel", openai_response_cancel, 0 },
        { HTTP_GET,  "/v1/responses/{}",     openai_response_get, 0 },
        { HTTP_DELETE, "/v1/responses/{}",   openai_response_delete, 0 },

        { HTTP_POST, "/v1/messages",         anthropic_messages, 0 },
        { HTTP_POST, "/v1/messages/count_tokens", anthropic_count_tokens, 0 },

        { HTTP_POST, "/api/generate",        ollama_generate, 0 },
        { HTTP_POST, "/api/chat",            ollama_chat, 0 },
        { HTTP_GET,  "/api/tags",            ollama_tags, 0 },
        { HTTP_POST, "/api/show",            ollama_show, 0 },
        { HTTP_GET,  "/api/ps",              ollama_ps, 0 },
        { HTTP_GET,  "/api/version",         ollama_version, 0 },
        { HTTP_POST, "/api/pull",            ollama_pull, 0 },
        { HTTP_POST, "/api/embed",           ollama_embed, 0 },
        { HTTP_POST, "/api/embeddings",      ollama_embed, 0 },
        { HTTP_POST, "/api/create",          ollama_change, 0 },
        { HTTP_POST, "/api/copy",            ollama_change, 0 },
        { HTTP_DELETE, "/api/delete",        ollama_change, 0 },
        { HTTP_POST, "/api/push",            ollama_change, 0 },
        { HTTP_GET,  "/api/blobs/{}",        ollama_change, 0 },
        { HTTP_POST, "/api/blobs/{}",        ollama_change, 0 },

        { HTTP_GET,  "/samovar/status",      own_status, 0 },
        { HTTP_GET,  "/samovar/work",        own_work, 0 },
        { HTTP_DELETE, "/samovar/work/{}",   own_work_end, 0 },
        { HTTP_GET,  "/samovar/pool",        own_pool, 0 },
        { HTTP_GET,  "/v1/streams/{}",       own_stream_resume, 0 },
        { HTTP_DELETE, "/v1/streams/{}",     own_stream_drop, 0 },
        { HTTP_POST, "/tokenize",            own_tokenize, 0 },
        { HTTP_POST, "/detokenize",          own_detokenize, 0 },
        { HTTP_POST, "/apply-template",      own_apply_template, 0 },
};
/* clang-format on */

const uint32_t route_count = sizeof(routes) / sizeof(*routes);
