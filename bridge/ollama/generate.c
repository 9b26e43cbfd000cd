#include "bridge/ollama/generate.h"

#include "bridge/core/bridge.h"
#include "bridge/core/vocabulary.h"
#include "bridge/ollama/record-writer.h"

static void clean(struct call *call)
{
        struct ollama_answer *answer = call->own;

        answer->run = run_deinit(answer->run);
}

/* A model without a chat template takes the prompt as it is, as Ollama does. */
static void choose_prompt(struct ollama_request *request, const struct smv_model *model)
{
        struct smv_generate *options = &request->options;

        if (request->chat || (model->chat && !request->raw))
                return;
        options->parts = 0; /* it is text as the model writes it */
        options->packed_messages = options->packed_vars = (struct smv_packed){ 0 };
        options->prompt = request->prompt.at;
        options->prompt_bytes = request->prompt.bytes;
}

static void go(struct call *call)
{
        struct ollama_answer *answer = call->own;
        struct ollama_request *request = &answer->request;
        struct smv_model model;
        struct failure failure;

        if (!bridge_model(call, request->model, &request->options.model))
                return;
        if (!bridge_find_model(call, request->options.model, &model)) {
                failure = call_no_model(call);
                call_fail(call, &failure);
                return;
        }
        if (request->empty) {
                ollama_reply_empty(call, answer);
                return;
        }
        choose_prompt(request, &model);
        answer->run = run_new(call, &request->options,
                              request->stream ? &ollama_streamed : &ollama_whole, answer);
        if (answer->run)
                run_start(answer->run);
        else
                call_no_memory(call);
}

static void begin(struct call *call, bool chat)
{
        struct fields fields = { 0 };
        struct ollama_answer *answer;

        if (!call_read_json(call))
                return;
        fields.json = call->json;
        call->own = answer = arena_alloc(&call->arena, sizeof(*answer));
        if (answer) {
                answer->request.chat = chat;
                ollama_read(call, &fields, &answer->request);
        }
        if (!call_was_read(call, &fields))
                return;
        call->clean = clean;
        if (answer->request.logprobs)
                call_with_vocabulary(call, go);
        else
                call_with_daemon(call, go);
}

void ollama_generate(struct call *call)
{
        begin(call, false);
}

void ollama_chat(struct call *call)
{
        begin(call, true);
}
