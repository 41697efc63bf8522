// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// A speaker writes the answers of one format.
type speaker struct {
	contentType string // of streams
	asks        bool   // streams report usage only on request

	start func(*call) string         // the events before the text
	text  func(*call, string) string // an event with text
	end   func(*call) string         // the events after the text
	whole func(*call) string         // the answer as JSON
}

const sse = "text/event-stream"

// speakerOf returns the format of a path, and the facts that the path has.
func speakerOf(path string) (s speaker, model string, stream, ok bool) {
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return speaker{sse, true, chatStart, chatText, chatEnd, chatWhole}, "", false, true
	case last == "completions":
		return speaker{sse, true, emptyStart, completionText, completionEnd, completionWhole}, "", false, true
	case last == "responses":
		return speaker{sse, false, responseStart, responseText, responseEnd, responseWhole}, "", false, true
	case last == "messages":
		return speaker{sse, false, messageStart, messageText, messageEnd, messageWhole}, "", false, true
	case strings.HasSuffix(last, "enerateContent"):
		model, action, _ := strings.Cut(last, ":")
		return speaker{sse, false, emptyStart, geminiText, geminiEnd, geminiWhole}, model, action == "streamGenerateContent", true
	case last == "converse" || last == "converse-stream":
		_, model, _ := strings.Cut(path, "/model/")
		model, _, _ = strings.Cut(model, "/")
		return speaker{"application/vnd.amazon.eventstream", false, converseStart, converseText, converseEnd, converseWhole}, model, last == "converse-stream", true
	}
	return speaker{}, "", false, false
}

func emptyStart(*call) string { return "" }

func data(format string, args ...any) string { return "data: " + fmt.Sprintf(format, args...) + "\n\n" }

func event(name, format string, args ...any) string {
	return "event: " + name + "\n" + data(`{"type":"`+name+`",`+format, args...)
}

// OpenAI chat.

func chatChunk(c *call, choice, usage string) string {
	return data(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":%q,"system_fingerprint":"fp_1","choices":[%s]%s}`, c.model, choice, usage)
}

func chatStart(c *call) string {
	return chatChunk(c, `{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`, c.openAINull())
}

func chatText(c *call, text string) string {
	return chatChunk(c, fmt.Sprintf(`{"index":0,"delta":{"content":%q},"logprobs":null,"finish_reason":null}`, text), c.openAINull())
}

func chatEnd(c *call) string {
	end := chatChunk(c, `{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}`, c.openAINull())
	if c.usage && c.Usage != NoUsage {
		end += chatChunk(c, "", `,"usage":`+c.openAIUsage())
	}
	return end + c.endMarker()
}

func chatWhole(c *call) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%q,"refusal":null},"logprobs":null,"finish_reason":"stop"}]%s}`,
		c.model, strings.Repeat(Word, c.sent), c.member("usage", c.openAIUsage()))
}

// openAINull returns the usage of a chunk with text.
func (c *call) openAINull() string {
	switch {
	case !c.usage:
		return ""
	case c.Usage == GrowingUsage:
		return `,"usage":` + c.openAIUsage()
	}
	return `,"usage":null`
}

func (c *call) openAIUsage() string {
	prompt, completion := c.countUsage()
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		prompt, completion, prompt+completion, min(c.Reasoning, completion))
}

// member returns a member of the last place in an object, unless the plan has no usage.
func (c *call) member(name, value string) string {
	if c.Usage == NoUsage {
		return ""
	}
	return fmt.Sprintf(`,%q:%s`, name, value)
}

// endMarker returns the last marker of OpenAI's streams.
func (c *call) endMarker() string {
	if c.NoEnd {
		return ""
	}
	return "data: [DONE]\n\n"
}

// OpenAI completions.

func completionText(c *call, text string) string {
	return data(`{"id":"cmpl-1","object":"text_completion","created":1760000000,"model":%q,"choices":[{"text":%q,"index":0,"logprobs":null,"finish_reason":null}]%s}`, c.model, text, c.openAINull())
}

func completionEnd(c *call) string {
	end := data(`{"id":"cmpl-1","object":"text_completion","created":1760000000,"model":%q,"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}]%s}`, c.model, c.openAINull())
	if c.usage && c.Usage != NoUsage {
		end += data(`{"id":"cmpl-1","object":"text_completion","created":1760000000,"model":%q,"choices":[],"usage":%s}`, c.model, c.openAIUsage())
	}
	return end + c.endMarker()
}

func completionWhole(c *call) string {
	return fmt.Sprintf(`{"id":"cmpl-1","object":"text_completion","created":1760000000,"model":%q,"choices":[{"text":%q,"index":0,"logprobs":null,"finish_reason":"stop"}]%s}`,
		c.model, strings.Repeat(Word, c.sent), c.member("usage", c.openAIUsage()))
}

// OpenAI responses.

func responseObject(c *call, status, output, usage string) string {
	return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":1760000000,"status":%q,"error":null,"incomplete_details":null,"model":%q,"output":[%s],"usage":%s}`, status, c.model, output, usage)
}

func responseItem(text string) string {
	return fmt.Sprintf(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":%q}]}`, text)
}

func responseStart(c *call) string {
	return event("response.created", `"sequence_number":0,"response":%s}`, responseObject(c, "in_progress", "", "null")) +
		event("response.output_item.added", `"sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`)
}

func responseText(c *call, text string) string {
	return event("response.output_text.delta", `"sequence_number":%d,"item_id":"msg_1","output_index":0,"content_index":0,"delta":%q}`, 1+c.sent, text)
}

// responseEnd repeats the text, as the API does.
func responseEnd(c *call) string {
	text := strings.Repeat(Word, c.sent)
	return event("response.output_text.done", `"sequence_number":%d,"item_id":"msg_1","output_index":0,"content_index":0,"text":%q}`, 2+c.sent, text) +
		event("response.output_item.done", `"sequence_number":%d,"output_index":0,"item":%s}`, 3+c.sent, responseItem(text)) +
		event("response.completed", `"sequence_number":%d,"response":%s}`, 4+c.sent, responseObject(c, "completed", responseItem(text), c.responseUsage()))
}

func responseWhole(c *call) string {
	return responseObject(c, "completed", responseItem(strings.Repeat(Word, c.sent)), c.responseUsage())
}

func (c *call) responseUsage() string {
	if c.Usage == NoUsage {
		return "null"
	}
	prompt, completion := c.countUsage()
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		prompt, completion, min(c.Reasoning, completion), prompt+completion)
}

// Anthropic messages.

func messageStart(c *call) string {
	usage := ""
	if c.Usage != NoUsage {
		prompt, _ := c.countUsage()
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}`, prompt)
	}
	return event("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null%s}}`, c.model, usage) +
		event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}}`) + "event: ping\n" + data(`{"type":"ping"}`)
}

func messageText(c *call, text string) string {
	return event("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":%q}}`, text)
}

func messageEnd(c *call) string {
	_, completion := c.countUsage()
	end := event("content_block_stop", `"index":0}`) +
		event("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null}%s}`, c.member("usage", fmt.Sprintf(`{"output_tokens":%d}`, completion)))
	if c.NoEnd {
		return end
	}
	return end + "event: message_stop\n" + data(`{"type":"message_stop"}`)
}

func messageWhole(c *call) string {
	prompt, completion := c.countUsage()
	return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null%s}`,
		c.model, strings.Repeat(Word, c.sent), c.member("usage", fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d}`, prompt, completion)))
}

// Gemini, whose events all report usage, and whose thoughts are apart from the candidates.

func geminiObject(c *call, text, finish, usage string) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%q}],"role":"model"},"index":0%s}]%s,"modelVersion":%q,"responseId":"r1"}`, text, finish, usage, c.model)
}

func (c *call) geminiUsage() string {
	prompt, completion := c.countUsage()
	thoughts := min(c.Reasoning, completion)
	return c.member("usageMetadata", fmt.Sprintf(`{"promptTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d}`, prompt, completion-thoughts, thoughts, prompt+completion))
}

func geminiText(c *call, text string) string {
	usage := ""
	if c.Usage == GrowingUsage {
		usage = c.geminiUsage()
	}
	return "data: " + geminiObject(c, text, "", usage) + "\r\n\r\n"
}

func geminiEnd(c *call) string {
	return "data: " + geminiObject(c, "", `,"finishReason":"STOP"`, c.geminiUsage()) + "\r\n\r\n"
}

func geminiWhole(c *call) string {
	return geminiObject(c, strings.Repeat(Word, c.sent), `,"finishReason":"STOP"`, c.geminiUsage())
}

// Bedrock Converse, in binary frames.

func frame(name, payload string) string {
	var head []byte
	for _, h := range [][2]string{{":event-type", name}, {":content-type", "application/json"}, {":message-type", "event"}} {
		head = append(append(head, byte(len(h[0]))), h[0]...)
		head = append(binary.BigEndian.AppendUint16(append(head, 7), uint16(len(h[1]))), h[1]...)
	}
	f := binary.BigEndian.AppendUint32(nil, uint32(16+len(head)+len(payload)))
	f = binary.BigEndian.AppendUint32(f, uint32(len(head)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, head...), payload...)
	return string(binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f)))
}

func converseStart(*call) string { return frame("messageStart", `{"p":"abcd","role":"assistant"}`) }

func converseText(c *call, text string) string {
	return frame("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":%q},"p":"abcdefgh"}`, text))
}

func converseEnd(c *call) string {
	end := frame("contentBlockStop", `{"contentBlockIndex":0,"p":"ab"}`) + frame("messageStop", `{"p":"abc","stopReason":"end_turn"}`)
	if c.Usage != NoUsage && !c.NoEnd {
		end += frame("metadata", `{"metrics":{"latencyMs":12},"p":"a","usage":`+c.converseUsage()+`}`)
	}
	return end
}

func converseWhole(c *call) string {
	return fmt.Sprintf(`{"metrics":{"latencyMs":12},"output":{"message":{"content":[{"text":%q}],"role":"assistant"}},"stopReason":"end_turn"%s}`,
		strings.Repeat(Word, c.sent), c.member("usage", c.converseUsage()))
}

func (c *call) converseUsage() string {
	prompt, completion := c.countUsage()
	return fmt.Sprintf(`{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d}`, prompt, completion, prompt+completion)
}
