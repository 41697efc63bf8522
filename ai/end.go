// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"encoding/json"
	"fmt"
)

// AppendEnd appends the last events of a cut stream. They report that the answer has reached its maximum of tokens:
// finish_reason "length", stop_reason "max_tokens", and so on. The client sees the given usage. In OpenAI's chat and
// completions, the usage has a chunk of its own. It is absent if it is zero, because most clients did not ask for it.
// If the answer has ended already, only a missing last marker follows.
//
// The bytes belong behind [Reader.EventEnd]. AppendEnd appends nothing to a JSON object and to compressed bodies.
func (r *Reader) AppendEnd(dst []byte, u Usage) []byte {
	if !r.canCut() {
		return dst
	}
	switch {
	case r.forward.done:
		return dst
	case r.forward.ended:
		return r.appendMarker(dst)
	}
	switch r.format {
	case OpenAIChat, OpenAICompletions:
		return r.appendMarker(r.appendLength(dst, u))
	case OpenAIResponses:
		return appendEvent(dst, "response.incomplete", fmt.Sprintf(`{"type":"response.incomplete","response":{"id":"%s","object":"response","status":"incomplete",`+
			`"error":null,"incomplete_details":{"reason":"max_output_tokens"},"model":"%s","output":[],"usage":{"input_tokens":%d,`+
			`"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}},`+
			`"sequence_number":%d}`, r.id(), r.model(), u.Prompt(), u.Cached, u.Completion(), u.Reasoning, u.Total(), r.forward.sequence+1))
	case Anthropic:
		if r.forward.block >= 0 {
			dst = appendEvent(dst, "content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, r.forward.block))
		}
		dst = appendEvent(dst, "message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},`+
			`"usage":{"output_tokens":%d}}`, u.Completion()))
		return r.appendMarker(dst)
	case Gemini:
		return r.appendElement(dst, fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"MAX_TOKENS","index":0}],`+
			`"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d},`+
			`"modelVersion":"%s","responseId":"%s"}`, u.Prompt(), u.Cached, u.Output, u.Reasoning, u.Total(), r.model(), r.id()))
	case Bedrock:
		if r.forward.block >= 0 {
			dst = appendBedrock(dst, "contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, r.forward.block))
		}
		dst = appendBedrock(dst, "messageStop", `{"stopReason":"max_tokens"}`)
		return appendBedrock(dst, "metadata", fmt.Sprintf(`{"metrics":{"latencyMs":0},"usage":{"inputTokens":%d,"cacheReadInputTokens":%d,`+
			`"cacheWriteInputTokens":%d,"outputTokens":%d,"totalTokens":%d}}`, u.Input, u.Cached, u.CacheWrite, u.Completion(), u.Total()))
	}
	return dst
}

// AppendError appends the events with which the provider itself reports a rate limit within a stream. Clients raise the
// same exception as for the provider's limit. The position is the same as for [Reader.AppendEnd].
func (r *Reader) AppendError(dst []byte, message string) []byte {
	if !r.canCut() || r.forward.done {
		return dst
	}
	quoted, _ := json.Marshal(message) // a string has no error
	switch r.format {
	case OpenAIChat, OpenAICompletions:
		dst = appendData(dst, fmt.Sprintf(`{"error":{"message":%s,"type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`, quoted))
		return r.appendMarker(dst)
	case OpenAIResponses:
		return appendEvent(dst, "error", fmt.Sprintf(`{"type":"error","code":"rate_limit_exceeded","message":%s,"param":null,"sequence_number":%d}`, quoted, r.forward.sequence+1))
	case Anthropic:
		return appendEvent(dst, "error", fmt.Sprintf(`{"type":"error","error":{"type":"rate_limit_error","message":%s}}`, quoted))
	case Gemini:
		return r.appendElement(dst, fmt.Sprintf(`{"error":{"code":429,"message":%s,"status":"RESOURCE_EXHAUSTED"}}`, quoted))
	case Bedrock:
		return appendFrame(dst, fmt.Sprintf(`{"message":%s}`, quoted),
			":exception-type", "throttlingException", ":content-type", "application/json", ":message-type", "exception")
	}
	return dst
}

// canCut reports whether the body consists of events, in plain text.
func (r *Reader) canCut() bool {
	return !r.packed && (r.framing == framingSSE || r.framing == framingFrames || r.framing == framingJSON && r.walker.inRootArray())
}

// appendMarker appends the marker behind the last event.
func (r *Reader) appendMarker(dst []byte) []byte {
	switch r.format {
	case OpenAIChat, OpenAICompletions:
		return appendData(dst, "[DONE]")
	case Anthropic:
		return appendEvent(dst, "message_stop", `{"type":"message_stop"}`)
	case Gemini:
		if r.framing == framingJSON {
			return append(dst, ']')
		}
	}
	return dst
}

// appendLength ends every choice of an OpenAI stream.
func (r *Reader) appendLength(dst []byte, u Usage) []byte {
	object, choice := "chat.completion.chunk", `{"index":%d,"delta":{},"logprobs":null,"finish_reason":"length"}`
	if r.format == OpenAICompletions {
		object, choice = "text_completion", `{"index":%d,"text":"","logprobs":null,"finish_reason":"length"}`
	}
	chunk := fmt.Sprintf(`{"id":"%s","object":"%s","created":%d,"model":"%s","choices":[`, r.id(), object, r.created, r.model())
	choices := ""
	for i := range min(max(r.forward.block, 0), maxChoices) + 1 {
		if i > 0 {
			choices += ","
		}
		choices += fmt.Sprintf(choice, i)
	}
	dst = appendData(dst, chunk+choices+"]}")
	if u == (Usage{}) {
		return dst
	}
	return appendData(dst, fmt.Sprintf(`%s],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},`+
		`"completion_tokens_details":{"reasoning_tokens":%d}}}`, chunk, u.Prompt(), u.Completion(), u.Total(), u.Cached, u.Reasoning))
}

// maxChoices is the highest index of a choice that AppendEnd ends. OpenAI permits 128 choices.
const maxChoices = 127

// id and model return the identity of the stream, with JSON's escape sequences.
func (r *Reader) id() []byte    { return r.walker.facts.id.text() }
func (r *Reader) model() []byte { return r.walker.facts.model.text() }

// appendElement appends an event of Gemini and ends a root array.
func (r *Reader) appendElement(dst []byte, data string) []byte {
	if r.framing != framingJSON {
		return append(append(append(dst, "data: "...), data...), "\r\n\r\n"...)
	}
	if r.forward.elements > 0 {
		dst = append(dst, ',')
	}
	return append(append(dst, data...), ']')
}

func appendEvent(dst []byte, name, data string) []byte {
	return appendData(append(append(append(dst, "event: "...), name...), '\n'), data)
}

func appendData(dst []byte, data string) []byte {
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}

func appendBedrock(dst []byte, event, payload string) []byte {
	return appendFrame(dst, payload, ":event-type", event, ":content-type", "application/json", ":message-type", "event")
}
