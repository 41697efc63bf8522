// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/ai"
)

// pieceBytes is the size of the pieces that a proxy copies.
const pieceBytes = 32 << 10

// longStreams are streams with the shapes of the providers, of 200 KB or more.
var longStreams = []struct {
	name, contentType string
	format            ai.Format
	body              []byte
}{
	{"openai_chat", "text/event-stream", ai.OpenAIChat, repeatEvents(600,
		`data: {"id":"chatcmpl-D8Z5oo6uDh67AD85p73ksdT1KxhE0","object":"chat.completion.chunk","created":1770933892,"model":"gpt-4.1-nano-2025-04-14",`+
			`"service_tier":"default","system_fingerprint":"fp_de604bd877","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,`+
			`"finish_reason":null}],"usage":null,"obfuscation":"yhjoJbEF"}`+"\n\n")},
	{"openai_responses", "text/event-stream", ai.OpenAIResponses, repeatEvents(1000,
		"event: response.output_text.delta\n"+`data: {"type":"response.output_text.delta","content_index":0,"delta":" token","item_id":`+
			`"msg_0a63f40a2632b74300699f8819a5e08196ac270722d369af5a","logprobs":[],"obfuscation":"zap0","output_index":0,"sequence_number":9}`+"\n\n")},
	{"anthropic", "text/event-stream", ai.Anthropic, repeatEvents(1500,
		"event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some more text"}}`+"\n\n")},
	{"gemini", "text/event-stream", ai.Gemini, repeatEvents(500,
		`data: {"candidates":[{"content":{"parts":[{"text":" several words of an answer of the model, about a line of it"}],"role":"model"},"index":0}],`+
			`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":10,"totalTokenCount":275,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}],`+
			`"thoughtsTokenCount":256},"modelVersion":"gemini-3-pro-preview","responseId":"dX6LadKVC7SZ28oPr9yJoQs"}`+"\r\n\r\n")},
	{"bedrock", "application/vnd.amazon.eventstream", ai.Bedrock, bytes.Repeat(frame("contentBlockDelta",
		`{"contentBlockIndex":0,"delta":{"text":" several words"},"p":"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"}`), 1000)},
	{"json", "application/json", ai.OpenAIChat, []byte(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("An answer of several lines.\\n", 10000) + `"}}],"usage":{"prompt_tokens":9,"completion_tokens":70000,"total_tokens":70009}}`)},
}

func repeatEvents(n int, event string) []byte { return bytes.Repeat([]byte(event), n) }

func BenchmarkReader(b *testing.B) {
	for _, s := range longStreams {
		b.Run(s.name, func(b *testing.B) {
			r := ai.NewReader(s.format, s.contentType, "")
			b.SetBytes(int64(len(s.body)))
			b.ReportAllocs()
			for b.Loop() {
				writePieces(r, s.body)
			}
			if r.Result().Err != nil || r.Result().Text.Bytes == 0 {
				b.Fatal(r.Result())
			}
		})
	}
}

func writePieces(r *ai.Reader, body []byte) {
	for piece := range piecesOf(body, pieceBytes) {
		r.Write(piece)
	}
}

// BenchmarkReader_Event measures a piece of one event, the usual piece of a stream.
func BenchmarkReader_Event(b *testing.B) {
	event := longStreams[0].body[:len(longStreams[0].body)/600]
	r := ai.NewReader(ai.OpenAIChat, "text/event-stream", "")
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	for b.Loop() {
		r.Write(event)
		r.Result()
	}
}

func BenchmarkUsageFilter(b *testing.B) {
	var f ai.UsageFilter
	var dst []byte
	body := longStreams[0].body
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for piece := range piecesOf(body, pieceBytes) {
			dst = f.Append(dst[:0], piece)
		}
	}
}

func BenchmarkReadRequest(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 512 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			body := []byte(`{"model":"gpt-4.1","max_tokens":500,"stream":true,"messages":[{"role":"user","content":"` +
				strings.Repeat("A line of a prompt. ", size/20) + `"}]}`)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ai.ReadRequest(ai.OpenAIChat, "/v1/chat/completions", body, int64(len(body))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestReader_Allocations checks that pieces cost no allocation.
func TestReader_Allocations(t *testing.T) {
	for _, s := range longStreams {
		r := ai.NewReader(s.format, s.contentType, "")
		if n := testing.AllocsPerRun(5, func() { writePieces(r, s.body); r.Result() }); n != 0 {
			t.Errorf("%s: %v allocations per %d bytes, want 0", s.name, n, len(s.body))
		}
	}
	var f ai.UsageFilter
	var dst []byte
	if n := testing.AllocsPerRun(5, func() {
		for piece := range piecesOf(longStreams[0].body, pieceBytes) {
			dst = f.Append(dst[:0], piece)
		}
	}); n != 0 {
		t.Errorf("filter: %v allocations, want 0", n)
	}
}
