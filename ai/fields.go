// SPDX-License-Identifier: Apache-2.0

package ai

// A field is the meaning of a member.
type field uint8

// The fields. The first ones are numbers.
const (
	fNothing field = iota

	fInput // usage: its meaning depends on the format, see reported
	fCached
	fWritten
	fOutput
	fReasoning
	fToolUse
	fTotal
	fRoundInput // sums over the elements of Anthropic's usage.iterations
	fRoundCached
	fRoundWritten
	fRoundOutput

	fMaxTokens // requests
	fMaxCompletion
	fChoices
	fBestOf

	fIndex    // of the content block
	fSequence // of the event

	fCreated // time in Unix seconds

	numbers // the number of fields before

	fText   // a string is text
	fDeep   // all strings, keys and numbers within are text
	fMedia  // an image, audio or a file
	fSource // Anthropic's source of an image or a document
	fSourceType
	fSourceData

	fModel
	fID
	fType    // of the event
	fFinish  // the reason for the end of the answer
	fStatus  // of a response of OpenAIResponses
	fFailed  // an error object
	fStream  // bool
	fInclude // bool: stream_options.include_usage
	fBackground
)

// isCharged reports whether a field of a request changes its cost.
func isCharged(f field) bool {
	return f >= fMaxTokens && f <= fBestOf || f == fModel || isBool(f)
}

func isBool(f field) bool { return f == fStream || f == fInclude || f == fBackground }

var numberNames = [numbers]string{
	fInput: "the number of input tokens", fCached: "the number of cached tokens", fWritten: "the number of tokens written to the cache",
	fOutput: "the number of output tokens", fReasoning: "the number of reasoning tokens", fToolUse: "the number of tool use tokens",
	fTotal: "the total number of tokens", fRoundInput: "iterations.input_tokens", fRoundCached: "iterations.cache_read_input_tokens",
	fRoundWritten: "iterations.cache_creation_input_tokens", fRoundOutput: "iterations.output_tokens",
	fMaxTokens: "the maximum of tokens", fMaxCompletion: "max_completion_tokens", fChoices: "the number of choices", fBestOf: "best_of",
}

// responseTrees list the members of responses and of the events of streams.
var responseTrees = [...]tree{
	OpenAIChat:        openAIResponse,
	OpenAICompletions: openAIResponse,
	OpenAIResponses: newTree(
		line{fInput, "usage.input_tokens response.usage.input_tokens"},
		line{fCached, "usage.input_tokens_details.cached_tokens response.usage.input_tokens_details.cached_tokens"},
		line{fWritten, "usage.input_tokens_details.cache_write_tokens response.usage.input_tokens_details.cache_write_tokens"},
		line{fOutput, "usage.output_tokens response.usage.output_tokens"},
		line{fReasoning, "usage.output_tokens_details.reasoning_tokens response.usage.output_tokens_details.reasoning_tokens"},
		line{fTotal, "usage.total_tokens response.usage.total_tokens"},
		line{fText, "delta output.content.text output.content.refusal output.summary.text output.arguments output.name output.input output.code"},
		line{fType, "type"}, line{fStatus, "status"}, line{fFailed, "error"},
		line{fID, "response.id"}, line{fModel, "response.model"}, line{fSequence, "sequence_number"},
	),
	Anthropic: newTree(
		line{fInput, "usage.input_tokens message.usage.input_tokens"},
		line{fCached, "usage.cache_read_input_tokens message.usage.cache_read_input_tokens"},
		line{fWritten, "usage.cache_creation_input_tokens message.usage.cache_creation_input_tokens"},
		line{fOutput, "usage.output_tokens message.usage.output_tokens"},
		line{fReasoning, "usage.output_tokens_details.thinking_tokens message.usage.output_tokens_details.thinking_tokens"},
		line{fRoundInput, "usage.iterations.input_tokens message.usage.iterations.input_tokens"},
		line{fRoundCached, "usage.iterations.cache_read_input_tokens message.usage.iterations.cache_read_input_tokens"},
		line{fRoundWritten, "usage.iterations.cache_creation_input_tokens message.usage.iterations.cache_creation_input_tokens"},
		line{fRoundOutput, "usage.iterations.output_tokens message.usage.iterations.output_tokens"},
		line{fText, "content_block.text content_block.thinking content_block.name delta.text delta.thinking delta.partial_json"},
		line{fText, "content.text content.thinking content.name"}, line{fDeep, "content.input"},
		line{fType, "type"}, line{fFinish, "stop_reason delta.stop_reason"}, line{fFailed, "error"},
		line{fIndex, "index"}, line{fModel, "message.model"}, line{fID, "message.id"},
	),
	Gemini: newTree(
		line{fInput, "usageMetadata.promptTokenCount"},
		line{fCached, "usageMetadata.cachedContentTokenCount"},
		line{fOutput, "usageMetadata.candidatesTokenCount"},
		line{fReasoning, "usageMetadata.thoughtsTokenCount"},
		line{fToolUse, "usageMetadata.toolUsePromptTokenCount"},
		line{fTotal, "usageMetadata.totalTokenCount"},
		line{fText, "candidates.content.parts.text candidates.content.parts.executableCode.code"},
		line{fDeep, "candidates.content.parts.functionCall"},
		line{fFinish, "candidates.finishReason promptFeedback.blockReason"}, line{fFailed, "error"},
		line{fModel, "modelVersion"}, line{fID, "responseId"},
	),
	Bedrock: newTree(
		line{fInput, "usage.inputTokens"},
		line{fCached, "usage.cacheReadInputTokens"},
		line{fWritten, "usage.cacheWriteInputTokens"},
		line{fOutput, "usage.outputTokens"},
		line{fTotal, "usage.totalTokens"},
		line{fText, "start.toolUse.name delta.text delta.toolUse.input delta.reasoningContent.text"},
		line{fText, "output.message.content.text output.message.content.toolUse.name output.message.content.reasoningContent.reasoningText.text"},
		line{fDeep, "output.message.content.toolUse.input"},
		line{fFinish, "stopReason"}, line{fIndex, "contentBlockIndex"},
	),
}

var openAIResponse = newTree(
	line{fInput, "usage.prompt_tokens x_groq.usage.prompt_tokens"},
	line{fCached, "usage.prompt_tokens_details.cached_tokens usage.prompt_cache_hit_tokens"},
	line{fWritten, "usage.prompt_tokens_details.cache_write_tokens"},
	line{fOutput, "usage.completion_tokens x_groq.usage.completion_tokens"},
	line{fReasoning, "usage.completion_tokens_details.reasoning_tokens"},
	line{fTotal, "usage.total_tokens x_groq.usage.total_tokens"},
	line{fText, "choices.text choices.delta.content choices.delta.content.text choices.delta.content.thinking.text"},
	line{fText, "choices.delta.reasoning_content choices.delta.reasoning choices.delta.refusal choices.delta.audio.transcript"},
	line{fText, "choices.delta.tool_calls.function.name choices.delta.tool_calls.function.arguments"},
	line{fText, "choices.delta.function_call.name choices.delta.function_call.arguments"},
	line{fText, "choices.message.content choices.message.content.text choices.message.content.thinking.text"},
	line{fText, "choices.message.reasoning_content choices.message.reasoning choices.message.refusal choices.message.audio.transcript"},
	line{fText, "choices.message.tool_calls.function.name choices.message.tool_calls.function.arguments"},
	line{fText, "choices.message.function_call.name choices.message.function_call.arguments"},
	line{fFinish, "choices.finish_reason"}, line{fIndex, "choices.index"}, line{fCreated, "created"}, line{fFailed, "error"}, line{fModel, "model"}, line{fID, "id"},
)

var requestTrees, memberTrees = func() (requests, members [len(requestLines)]tree) {
	for f, lines := range requestLines {
		requests[f], members[f] = newRequestTree(lines), newMemberTree(lines)
	}
	return requests, members
}()

// requestLines list the members of requests. Everything within a message counts as text, except
// for the listed members.
var requestLines = [...][]line{
	OpenAIChat: {
		line{fModel, "model"}, line{fMaxTokens, "max_tokens"}, line{fMaxCompletion, "max_completion_tokens"}, line{fChoices, "n"},
		line{fStream, "stream"}, line{fInclude, "stream_options.include_usage"},
		line{fDeep, "messages messages.* messages.content messages.content.* tools functions response_format prediction"},
		line{fNothing, "messages.role messages.tool_call_id messages.content.type messages.content.cache_control"},
		line{fMedia, "messages.content.image_url messages.content.input_audio messages.content.file messages.content.video_url messages.audio"},
	},
	OpenAICompletions: {
		line{fModel, "model"}, line{fMaxTokens, "max_tokens"}, line{fMaxCompletion, "max_completion_tokens"},
		line{fChoices, "n"}, line{fBestOf, "best_of"},
		line{fStream, "stream"}, line{fInclude, "stream_options.include_usage"}, line{fDeep, "prompt suffix"},
	},
	OpenAIResponses: {
		line{fModel, "model"}, line{fMaxTokens, "max_output_tokens"}, line{fStream, "stream"}, line{fBackground, "background"},
		line{fDeep, "instructions input input.* input.content input.content.* input.output input.output.* tools text prompt"},
		line{fNothing, "input.role input.type input.id input.call_id input.status input.content.type input.content.detail input.output.type"},
		line{fMedia, "input.image_url input.content.image_url input.content.file_data input.content.file_id input.content.file_url input.content.input_audio " +
			"input.output.image_url input.output.file_data input.output.file_id input.output.file_url input.result"},
	},
	Anthropic: {
		line{fModel, "model"}, line{fMaxTokens, "max_tokens"}, line{fStream, "stream"},
		line{fDeep, "system system.* messages messages.* messages.content messages.content.* messages.content.content messages.content.content.* tools"},
		line{fNothing, "messages.role system.type system.cache_control messages.content.type messages.content.id messages.content.tool_use_id messages.content.cache_control " +
			"messages.content.signature messages.content.content.type messages.content.content.cache_control"},
		line{fSource, "messages.content.source messages.content.content.source"},
		line{fSourceType, "messages.content.source.type messages.content.content.source.type"},
		line{fSourceData, "messages.content.source.data messages.content.content.source.data"},
		line{fDeep, "messages.content.source.content messages.content.content.source.content"},
	},
	Gemini: {
		line{fMaxTokens, "generationConfig|generation_config.maxOutputTokens|max_output_tokens"},
		line{fChoices, "generationConfig|generation_config.candidateCount|candidate_count"},
		line{fDeep, "contents contents.* contents.parts contents.parts.* systemInstruction|system_instruction tools generationConfig|generation_config.responseSchema|response_schema generationConfig|generation_config.responseJsonSchema|response_json_schema"},
		line{fNothing, "contents.role contents.parts.thoughtSignature contents.parts.thought_signature contents.parts.videoMetadata"},
		line{fMedia, "contents.parts.inlineData contents.parts.inline_data contents.parts.fileData contents.parts.file_data"},
	},
	Bedrock: {
		line{fMaxTokens, "inferenceConfig.maxTokens"},
		line{fDeep, "system messages messages.* messages.content messages.content.* toolConfig messages.content.toolResult.content.*"},
		line{fNothing, "messages.role messages.content.cachePoint messages.content.toolUse.toolUseId messages.content.toolResult.toolUseId messages.content.toolResult.status"},
		line{fDeep, "messages.content.toolUse.*"},
		line{fMedia, "messages.content.image messages.content.document messages.content.video messages.content.audio " +
			"messages.content.toolResult.content.image messages.content.toolResult.content.document messages.content.toolResult.content.video"},
	},
}
