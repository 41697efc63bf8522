// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/metehq/mete/proof/provider"
)

// sdkPolicy limits each case to 100 tokens. The format of denials and the end of streams are variable.
const sdkPolicy = `
denial: { format: %s }
rules:
  - name: stream
    limit_keys: ["header:x-case"]
    match: { "ai:model": "*" }
    algorithm: cost_based
    budget: 100
    period: month
    timezone: UTC
    cost_source: ai:tokens
    default_max_completion: 20
    streaming: { buffer_tokens: 20, on_limit_exceeded: %s }
`

// plan returns the header values of a long stream.
func plan(t *testing.T, id string) string {
	t.Helper()
	p, h := provider.Plan{ID: id, Events: slices.Repeat([]int{5}, 80)}, http.Header{}
	p.Set(h)
	return h.Get(provider.PlanHeader)
}

func TestOpenAISDK(t *testing.T) {
	for _, action := range []string{"graceful_close", "error_chunk"} {
		t.Run(action, func(t *testing.T) {
			g := start(t, fmt.Sprintf(sdkPolicy, "openai", action))
			client := openai.NewClient(option.WithBaseURL(g.URL+"/v1"), option.WithAPIKey("sk-1"), option.WithMaxRetries(0))
			request := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(provider.Prompt(10))}}

			whole, err := client.Chat.Completions.New(t.Context(), request, option.WithHeader("X-Case", "whole"))
			if err != nil || whole.Usage.CompletionTokens != 20 || whole.Choices[0].Message.Content != provider.Prompt(20) {
				t.Errorf("a completion: %v, %v", whole, err)
			}
			stream := client.Chat.Completions.NewStreaming(t.Context(), request, option.WithHeader("X-Case", "cut"), option.WithHeader(provider.PlanHeader, plan(t, "cut")))
			var all openai.ChatCompletionAccumulator
			for stream.Next() {
				all.AddChunk(stream.Current())
			}
			stream.Close()
			checkEnd(t, action, stream.Err(), "rate_limit", all.Choices[0].FinishReason == "length")
			if n := strings.Count(all.Choices[0].Message.Content, provider.Word); n < 70 || n > 125 {
				t.Errorf("the stream has %d tokens", n)
			}
			_, err = client.Chat.Completions.New(t.Context(), request, option.WithHeader("X-Case", "cut"))
			refusal, ok := errors.AsType[*openai.Error](err)
			if !ok || refusal.StatusCode != http.StatusTooManyRequests || refusal.Type != "rate_limit_error" || refusal.Code != "rate_limit_exceeded" || refusal.Message == "" || refusal.Response.Header.Get("Retry-After") == "" {
				t.Errorf("a denial: %+v, %v", refusal, err)
			}

			events := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(provider.Prompt(10))}},
				option.WithHeader("X-Case", "events"), option.WithHeader(provider.PlanHeader, plan(t, "events")))
			last := responses.ResponseStreamEventUnion{}
			for events.Next() {
				last = events.Current()
			}
			events.Close()
			if action == "graceful_close" {
				if err := events.Err(); err != nil || last.Type != "response.incomplete" || last.Response.IncompleteDetails.Reason != "max_output_tokens" {
					t.Errorf("the events end with %s, %v", last.RawJSON(), err)
				}
			} else if events.Err() == nil && last.Type != "error" {
				t.Errorf("the events end with %s, %v", last.RawJSON(), events.Err())
			}
		})
	}
}

func TestAnthropicSDK(t *testing.T) {
	for _, action := range []string{"graceful_close", "error_chunk"} {
		t.Run(action, func(t *testing.T) {
			g := start(t, fmt.Sprintf(sdkPolicy, "anthropic", action))
			client := anthropic.NewClient(anthropicoption.WithBaseURL(g.URL), anthropicoption.WithAPIKey("sk-1"), anthropicoption.WithMaxRetries(0))
			request := anthropic.MessageNewParams{Model: "m", MaxTokens: 20, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(provider.Prompt(10)))}}

			whole, err := client.Messages.New(t.Context(), request, anthropicoption.WithHeader("X-Case", "whole"))
			if err != nil || whole.Usage.OutputTokens != 20 || whole.Content[0].Text != provider.Prompt(20) {
				t.Errorf("a message: %v, %v", whole, err)
			}
			stream := client.Messages.NewStreaming(t.Context(), request, anthropicoption.WithHeader("X-Case", "cut"), anthropicoption.WithHeader(provider.PlanHeader, plan(t, "cut")))
			var all anthropic.Message
			for stream.Next() {
				if err := all.Accumulate(stream.Current()); err != nil {
					t.Fatal(err)
				}
			}
			stream.Close()
			checkEnd(t, action, stream.Err(), "rate_limit_error", all.StopReason == anthropic.StopReasonMaxTokens)
			if n := strings.Count(all.Content[0].Text, provider.Word); n < 70 || n > 125 {
				t.Errorf("the stream has %d tokens", n)
			}
			_, err = client.Messages.New(t.Context(), request, anthropicoption.WithHeader("X-Case", "cut"))
			refusal, ok := errors.AsType[*anthropic.Error](err)
			if !ok || refusal.StatusCode != http.StatusTooManyRequests || !strings.Contains(refusal.RawJSON(), `"type":"rate_limit_error"`) || refusal.Response.Header.Get("Retry-After") == "" {
				t.Errorf("a denial: %+v, %v", refusal, err)
			}
		})
	}
}

// checkEnd compares the end of a cut stream with the policy's word for it.
func checkEnd(t *testing.T, action string, err error, want string, atMaximum bool) {
	t.Helper()
	switch {
	case action == "graceful_close" && (err != nil || !atMaximum):
		t.Errorf("a closed stream has the error %v, and its maximum is reached: %v", err, atMaximum)
	case action == "error_chunk" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("a stream with an error ends with %v, want %q", err, want)
	}
}
