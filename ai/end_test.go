// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/metehq/mete/ai"
)

var partialUsage = ai.Usage{Input: 10, Cached: 5, Output: 7, Reasoning: 3}

// cuts are the beginnings of streams and the events that end them.
var cuts = []struct {
	name, content    string
	format           ai.Format
	head, end, error string
}{
	{"chat", "text/event-stream", ai.OpenAIChat,
		`data: {"id":"c\u0031","object":"chat.completion.chunk","created":1770933892,"model":"gpt","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}` + "\n\n",
		`data: {"id":"c\u0031","object":"chat.completion.chunk","created":1770933892,"model":"gpt","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}` + "\n\n" +
			`data: {"id":"c\u0031","object":"chat.completion.chunk","created":1770933892,"model":"gpt","choices":[],"usage":{"prompt_tokens":15,"completion_tokens":10,"total_tokens":25,` +
			`"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":3}}}` + "\n\ndata: [DONE]\n\n",
		`data: {"error":{"message":"too \"many\"","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}` + "\n\ndata: [DONE]\n\n"},
	{"chat with two choices", "text/event-stream", ai.OpenAIChat,
		`data: {"id":"c","created":1,"model":"gpt","choices":[{"index":0,"delta":{}}]}` + "\n\n" + `data: {"id":"c","created":1,"model":"gpt","choices":[{"index":1,"delta":{}}]}` + "\n\n",
		`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"},` +
			`{"index":1,"delta":{},"logprobs":null,"finish_reason":"length"}]}` + "\n\n" +
			`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[],"usage":{"prompt_tokens":15,"completion_tokens":10,"total_tokens":25,` +
			`"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":3}}}` + "\n\ndata: [DONE]\n\n",
		""},
	{"completions", "text/event-stream", ai.OpenAICompletions,
		`data: {"id":"c","created":1,"model":"m","choices":[{"text":"Hi","index":0}]}` + "\n\n",
		`data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length"}]}` + "\n\n" +
			`data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":15,"completion_tokens":10,"total_tokens":25,` +
			`"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":3}}}` + "\n\ndata: [DONE]\n\n",
		`data: {"error":{"message":"too \"many\"","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}` + "\n\ndata: [DONE]\n\n"},
	{"responses", "text/event-stream", ai.OpenAIResponses,
		`data: {"type":"response.created","response":{"id":"resp_1","model":"gpt"},"sequence_number":0}` + "\n\n" + `data: {"type":"response.output_text.delta","delta":"Hi","sequence_number":4}` + "\n\n",
		"event: response.incomplete\n" + `data: {"type":"response.incomplete","response":{"id":"resp_1","object":"response","status":"incomplete","error":null,` +
			`"incomplete_details":{"reason":"max_output_tokens"},"model":"gpt","output":[],"usage":{"input_tokens":15,"input_tokens_details":{"cached_tokens":5},` +
			`"output_tokens":10,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":25}},"sequence_number":5}` + "\n\n",
		"event: error\n" + `data: {"type":"error","code":"rate_limit_exceeded","message":"too \"many\"","param":null,"sequence_number":5}` + "\n\n"},
	{"anthropic", "text/event-stream", ai.Anthropic,
		`data: {"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":10,"cache_read_input_tokens":5}}}` + "\n\n" +
			`data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}` + "\n\n",
		"event: content_block_stop\n" + `data: {"type":"content_block_stop","index":1}` + "\n\nevent: message_delta\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":10}}` + "\n\n" +
			"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n",
		"event: error\n" + `data: {"type":"error","error":{"type":"rate_limit_error","message":"too \"many\""}}` + "\n\n"},
	{"gemini", "text/event-stream", ai.Gemini,
		`data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"modelVersion":"g","responseId":"r"}` + "\r\n\r\n",
		`data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":15,` +
			`"cachedContentTokenCount":5,"candidatesTokenCount":7,"thoughtsTokenCount":3,"totalTokenCount":25},"modelVersion":"g","responseId":"r"}` + "\r\n\r\n",
		`data: {"error":{"code":429,"message":"too \"many\"","status":"RESOURCE_EXHAUSTED"}}` + "\r\n\r\n"},
	{"gemini array", "application/json", ai.Gemini,
		`[{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"modelVersion":"g","responseId":"r"}`,
		`,{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":15,` +
			`"cachedContentTokenCount":5,"candidatesTokenCount":7,"thoughtsTokenCount":3,"totalTokenCount":25},"modelVersion":"g","responseId":"r"}]`,
		`,{"error":{"code":429,"message":"too \"many\"","status":"RESOURCE_EXHAUSTED"}}]`},
	{"bedrock", "application/vnd.amazon.eventstream", ai.Bedrock,
		string(frame("contentBlockDelta", `{"contentBlockIndex":2,"delta":{"text":"Hi"}}`)),
		string(frame("contentBlockStop", `{"contentBlockIndex":2}`)) + string(frame("messageStop", `{"stopReason":"max_tokens"}`)) +
			string(frame("metadata", `{"metrics":{"latencyMs":0},"usage":{"inputTokens":10,"cacheReadInputTokens":5,"cacheWriteInputTokens":0,"outputTokens":10,"totalTokens":25}}`)),
		string(frameOf(`{"message":"too \"many\""}`, ":exception-type", "throttlingException", ":content-type", "application/json", ":message-type", "exception"))},
}

func TestReader_AppendEnd(t *testing.T) {
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			r := ai.NewReader(c.format, c.content, "")
			// The start of another event does not matter.
			r.Write([]byte(c.head + c.head[:len(c.head)/3]))
			if got := r.EventEnd(); got != len(c.head) {
				t.Fatalf("the event ends at %d, want %d", got, len(c.head))
			}
			if got := string(r.AppendEnd([]byte(">"), partialUsage)); got != ">"+c.end {
				t.Errorf("end: got\n%s, want\n%s", got, c.end)
			}
			if got := string(r.AppendError(nil, `too "many"`)); got != c.error && c.error != "" {
				t.Errorf("error: got\n%s, want\n%s", got, c.error)
			}
			checkEnd(t, c.format, c.content, c.head+c.end)
		})
	}
}

// checkEnd reads a cut stream as a client does.
func checkEnd(t *testing.T, f ai.Format, content, body string) {
	t.Helper()
	r := ai.NewReader(f, content, "")
	r.Write([]byte(body))
	got := r.Result()
	if !got.Ended || got.Failed || got.State != ai.FinalUsage || got.Usage.Total() != partialUsage.Total() {
		t.Errorf("the cut stream reads as %+v", got)
	}
	if end := r.AppendEnd(nil, partialUsage); len(end) > 0 && f != ai.Gemini && f != ai.Bedrock {
		t.Errorf("a complete stream gets another end %q", end)
	}
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && !strings.HasPrefix(data, "[DONE]") && !json.Valid([]byte(data)) {
			t.Errorf("invalid JSON: %s", data)
		}
	}
	if strings.HasPrefix(body, "[") && !json.Valid([]byte(body)) {
		t.Errorf("invalid JSON: %s", body)
	}
}

// TestReader_AppendEnd_Ended completes streams that contain the end of the answer.
func TestReader_AppendEnd_Ended(t *testing.T) {
	for _, tt := range []struct {
		format     ai.Format
		body, want string
	}{
		{ai.OpenAIChat, `data: {"choices":[{"finish_reason":"stop"}]}`, "data: [DONE]\n\n"},
		{ai.OpenAIChat, `data: [DONE]`, ""},
		{ai.OpenAIResponses, `data: {"type":"response.completed"}`, ""},
		{ai.Anthropic, `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
		{ai.Anthropic, `data: {"type":"message_stop"}`, ""},
		{ai.Gemini, `data: {"candidates":[{"finishReason":"STOP"}]}`, ""},
	} {
		r := ai.NewReader(tt.format, "text/event-stream", "")
		r.Write([]byte(tt.body + "\n\n"))
		if got := string(r.AppendEnd(nil, ai.Usage{})); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.format, tt.body, got, tt.want)
		}
	}
}

// TestReader_AppendEnd_NoUsage checks that a client that did not ask for usage gets none.
func TestReader_AppendEnd_NoUsage(t *testing.T) {
	r := ai.NewReader(ai.OpenAIChat, "text/event-stream", "")
	r.Write([]byte(cuts[0].head))
	if got := string(r.AppendEnd(nil, ai.Usage{})); strings.Contains(got, "usage") || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("got %s", got)
	}
}

// TestReader_AppendEnd_Impossible checks the bodies that cannot be cut.
func TestReader_AppendEnd_Impossible(t *testing.T) {
	for _, tt := range []struct{ content, coding, body string }{
		{"application/json", "", `{"choices":[{"message":{"content":"Hi`},
		{"text/event-stream", "gzip", string(compress(t, []byte(cuts[0].head)))},
		{"text/event-stream", "br", "x"},
	} {
		r := ai.NewReader(ai.OpenAIChat, tt.content, tt.coding)
		r.Write([]byte(tt.body))
		r.Close()
		if got := r.AppendEnd(nil, partialUsage); len(got) > 0 || r.EventEnd() != -1 {
			t.Errorf("%s %s: got %q and an end at %d", tt.content, tt.coding, got, r.EventEnd())
		}
		if got := r.AppendError(nil, "x"); len(got) > 0 {
			t.Errorf("%s %s: got %q", tt.content, tt.coding, got)
		}
	}
}

// TestReader_EventEnd cuts every stream of the vectors at every place. The bytes up to the last end of an event, and the
// end that is appended, are a complete stream.
func TestReader_EventEnd(t *testing.T) {
	for _, v := range readVectors(t) {
		for i := range v.body {
			r := ai.NewReader(v.format, v.content, "")
			r.Write(v.body[:i])
			n := r.EventEnd()
			if n < 0 {
				continue
			}
			whole := r.AppendEnd(bytes.Clone(v.body[:n]), partialUsage)
			end := ai.NewReader(v.format, v.content, "")
			end.Write(whole)
			if got := end.Result(); !got.Ended {
				t.Fatalf("%s: cut at %d of %d bytes: got %+v of\n%s", v.name, n, i, got, whole)
			}
		}
	}
}

// WriteUntil stops behind each event of a piece.
func TestReader_WriteUntil(t *testing.T) {
	for _, c := range cuts {
		body := []byte(c.head + c.end)
		var ends []int // of the events, found byte by byte
		r := ai.NewReader(c.format, c.content, "")
		for i := range body {
			if r.Write(body[i : i+1]); r.EventEnd() < 0 {
				continue
			}
			if len(ends) > 0 && ends[len(ends)-1] == i && body[i] == '\n' { // of \r\n
				ends = ends[:len(ends)-1]
			}
			ends = append(ends, i+1)
		}
		for i, want := range ends {
			r, seen := ai.NewReader(c.format, c.content, ""), 0
			n, stopped := r.WriteUntil(body, func() bool { seen++; return seen == i+1 })
			if n != want || !stopped || r.EventEnd() != want || r.Result().Bytes < int64(want) {
				t.Errorf("%s: event %d: WriteUntil: %d, %v, want %d", c.name, i, n, stopped, want)
			}
			if n, stopped := r.WriteUntil(body[n:], func() bool { return false }); n != len(body)-want || stopped {
				t.Errorf("%s: the rest behind event %d: %d, %v", c.name, i, n, stopped)
			}
		}
		if len(ends) < 2 {
			t.Errorf("%s has %d events", c.name, len(ends))
		}
	}
	r := ai.NewReader(ai.OpenAIChat, "text/event-stream", "gzip")
	packed := compress(t, []byte(cuts[0].head))
	if n, stopped := r.WriteUntil(packed, func() bool { return true }); n != len(packed) || stopped {
		t.Errorf("a compressed body: %d, %v", n, stopped)
	}
}
