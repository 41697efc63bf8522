// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/ai"
)

// usageForms has a response of each wire form. USAGE is the object of its usage.
var usageForms = []struct {
	format        ai.Format
	content, body string
	members       []string // each is a number of tokens
}{
	{ai.OpenAIChat, "application/json", `{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}],"usage":USAGE}`, openAIMembers},
	{ai.OpenAIChat, "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":USAGE}\n\ndata: [DONE]\n\n", openAIMembers},
	{ai.OpenAICompletions, "application/json", `{"choices":[{"text":"Hello","finish_reason":"stop"}],"usage":USAGE}`, openAIMembers},
	{ai.OpenAICompletions, "text/event-stream", "data: {\"choices\":[{\"text\":\"Hello\",\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":USAGE}\n\ndata: [DONE]\n\n", openAIMembers},
	{ai.OpenAIResponses, "application/json", `{"status":"completed","output":[{"content":[{"text":"Hello"}]}],"usage":USAGE}`, responsesMembers},
	{ai.OpenAIResponses, "text/event-stream", "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":USAGE}}\n\n", responsesMembers},
	{ai.Anthropic, "application/json", `{"content":[{"text":"Hello"}],"stop_reason":"end_turn","usage":USAGE}`, anthropicMembers},
	{ai.Anthropic, "text/event-stream", "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Hello\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":USAGE}\n\ndata: {\"type\":\"message_stop\"}\n\n", anthropicMembers},
	{ai.Gemini, "application/json", `{"candidates":[{"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}],"usageMetadata":USAGE}`, geminiMembers},
	{ai.Gemini, "application/json", `[{"candidates":[{"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}],"usageMetadata":USAGE}]`, geminiMembers},
	{ai.Gemini, "text/event-stream", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hello\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":USAGE}\r\n\r\n", geminiMembers},
	{ai.Bedrock, "application/json", `{"output":{"message":{"content":[{"text":"Hello"}]}},"stopReason":"end_turn","usage":USAGE}`, bedrockMembers},
	{ai.Bedrock, "application/vnd.amazon.eventstream", "contentBlockDelta {\"delta\":{\"text\":\"Hello\"}}\nmessageStop {\"stopReason\":\"end_turn\"}\nmetadata {\"usage\":USAGE}", bedrockMembers},
}

var (
	openAIMembers    = strings.Fields("prompt_tokens completion_tokens total_tokens prompt_tokens_details.cached_tokens prompt_tokens_details.cache_write_tokens completion_tokens_details.reasoning_tokens")
	responsesMembers = strings.Fields("input_tokens output_tokens total_tokens input_tokens_details.cached_tokens output_tokens_details.reasoning_tokens")
	anthropicMembers = strings.Fields("input_tokens output_tokens cache_read_input_tokens cache_creation_input_tokens output_tokens_details.thinking_tokens " +
		"iterations.input_tokens iterations.output_tokens iterations.cache_read_input_tokens iterations.cache_creation_input_tokens")
	geminiMembers  = strings.Fields("promptTokenCount candidatesTokenCount totalTokenCount cachedContentTokenCount thoughtsTokenCount toolUsePromptTokenCount")
	bedrockMembers = strings.Fields("inputTokens outputTokens totalTokens cacheReadInputTokens cacheWriteInputTokens")
)

// usageObject returns the object with some members, which are a number each.
func usageObject(number string, members ...string) string {
	var all []string
	for _, m := range members {
		outer, inner, nested := strings.Cut(m, ".")
		if nested {
			all = append(all, fmt.Sprintf(`%q:{%q:%s}`, outer, inner, number))
		} else {
			all = append(all, fmt.Sprintf(`%q:%s`, outer, number))
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

// A usage above MaxUsage counts as none, in each number of each wire form. The text is still there for an estimate.
func TestReader_AbsurdUsage(t *testing.T) {
	for _, form := range usageForms {
		read := func(usage string) ai.Result {
			body := []byte(strings.ReplaceAll(form.body, "USAGE", usage))
			if strings.HasSuffix(form.content, "eventstream") {
				lines := strings.Split(string(body), "\n")
				body = nil
				for _, line := range lines {
					event, payload, _ := strings.Cut(line, " ")
					body = append(body, frame(event, payload)...)
				}
			}
			r := ai.NewReader(form.format, form.content, "")
			r.Write(body)
			r.Close()
			return r.Result()
		}
		refused := func(what, usage string) {
			t.Helper()
			got := read(usage)
			e, ok := got.Err.(*ai.Error)
			if !ok || e.Kind != ai.InvalidUsage || got.State != ai.NoUsage || got.Usage != (ai.Usage{}) || got.Text.Chars != 5 {
				t.Errorf("%s %s: %s: got %+v", form.format, form.content, what, got)
			}
			if charged := got.Settle(10, 2); charged != (ai.Usage{Input: 10, Output: 2}) {
				t.Errorf("%s %s: %s: the charge is %+v, want the estimates", form.format, form.content, what, charged)
			}
		}
		for _, m := range form.members {
			if got := read(usageObject(fmt.Sprint(ai.MaxUsage), m)); got.Err != nil || got.State != ai.FinalUsage || got.Usage.Total() != ai.MaxUsage {
				t.Errorf("%s %s: %s of the bound: got %+v", form.format, form.content, m, got)
			}
			for _, number := range []string{fmt.Sprint(ai.MaxUsage + 1), "999999999", "1e9", "1e300", "9223372036854775808"} {
				refused(m+" "+number, usageObject(number, m))
			}
		}
		refused("the sum of two numbers", usageObject(fmt.Sprint(ai.MaxUsage/2+1), form.members[:2]...))
	}
}

// The sum of an array and the sum of rounds have the same bound. Sums of many numbers do not overflow.
func TestReader_AbsurdSums(t *testing.T) {
	const tenMillion = 10_000_000
	for _, tt := range []struct {
		what   string
		format ai.Format
		body   string
		valid  bool
	}{
		{"an array at the bound", ai.OpenAIChat, "[" + strings.Repeat(fmt.Sprintf(`{"usage":{"prompt_tokens":%d}},`, tenMillion), 2) + `{"usage":{"prompt_tokens":0}}]`, true},
		{"an array above it", ai.OpenAIChat, "[" + strings.Repeat(fmt.Sprintf(`{"usage":{"prompt_tokens":%d}},`, tenMillion), 2) + `{"usage":{"prompt_tokens":1}}]`, false},
		{"a long array", ai.OpenAIChat, "[" + strings.Repeat(fmt.Sprintf(`{"usage":{"prompt_tokens":%d}},`, tenMillion), 10_000) + `{"usage":{"prompt_tokens":1}}]`, false},
		{"rounds at the bound", ai.Anthropic, fmt.Sprintf(`{"usage":{"iterations":[{"input_tokens":%d},{"input_tokens":%d}]}}`, tenMillion, tenMillion), true},
		{"rounds above it", ai.Anthropic, fmt.Sprintf(`{"usage":{"iterations":[{"input_tokens":%d},{"input_tokens":%d}]}}`, tenMillion, tenMillion+1), false},
	} {
		r := ai.NewReader(tt.format, "application/json", "")
		r.Write([]byte(tt.body))
		r.Close()
		if got := r.Result(); (got.State != ai.NoUsage) != tt.valid || (got.Err == nil) != tt.valid {
			t.Errorf("%s: got %+v", tt.what, got)
		}
	}
}

// A later event with a valid number replaces an absurd one, as it replaces any other.
func TestReader_AbsurdUsageIsReplaced(t *testing.T) {
	r := ai.NewReader(ai.OpenAIChat, "text/event-stream", "")
	for _, tt := range []struct {
		tokens string
		state  ai.State
	}{{"999999999", ai.NoUsage}, {"7", ai.PartialUsage}} {
		fmt.Fprintf(r, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":%s}}\n\n", tt.tokens)
		if got := r.Result(); got.State != tt.state {
			t.Errorf("after %s: got %+v", tt.tokens, got)
		}
	}
}
