// SPDX-License-Identifier: Apache-2.0

package ai_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/metehq/mete/ai"
)

func ExampleReadRequest() {
	const path = "/v1/chat/completions"
	format, _ := ai.DetectFormat("POST", path)
	body := []byte(`{"model":"gpt-4.1","max_tokens":300,"messages":[{"role":"user","content":"Why is the sky blue?"}]}`)

	request, err := ai.ReadRequest(format, path, body, int64(len(body)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(request.Model, "needs", ai.SimpleWord(request), "tokens and up to", request.Completion(1000), "more")
	// Output:
	// gpt-4.1 needs 5 tokens and up to 300 more
}

func ExampleReader() {
	stream := strings.Join([]string{
		`event: message_start`,
		`data: {"type":"message_start","message":{"model":"claude","usage":{"input_tokens":43,"output_tokens":1}}}`,
		``,
		`event: content_block_delta`,
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Rayleigh scattering."}}`,
		``,
		`event: message_delta`,
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":61,"output_tokens":9}}`,
		``,
	}, "\n")

	reader := ai.NewReader(ai.Anthropic, "text/event-stream", "")
	defer reader.Close()
	if _, err := io.Copy(io.Discard, io.TeeReader(strings.NewReader(stream), reader)); err != nil {
		fmt.Println(err)
		return
	}
	result := reader.Result()
	fmt.Println(result.Usage.Prompt(), "+", result.Usage.Completion(), "tokens for", result.Text.Chars, "characters")
	// Output:
	// 61 + 9 tokens for 20 characters
}
