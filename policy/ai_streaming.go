// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/metehq/mete/internal/parse"

// Streaming is the treatment of a response that streams more tokens than its request reserved.
type Streaming struct {
	Every    int64       // tokens between two charges; at least 1
	OnLimit  StreamLimit // when a limit has no tokens for the rest
	Partial  bool        // a closed stream ends with the usage until then
	AskUsage bool        // the provider is asked for usage if the client does not ask for it
}

// StreamLimit is the end of a stream when a limit has no tokens for the rest of it.
type StreamLimit uint8

const (
	StreamContinue StreamLimit = iota // it continues, and the limit owes its tokens
	StreamClose                       // it ends as if the model had reached its maximum
	StreamError                       // it ends with the provider's error for exceeded limits
)

var streamWords = []string{StreamContinue: "continue", StreamClose: "graceful_close", StreamError: "error_chunk"}

const (
	defaultStreamTokens = 100
	maxStreamTokens     = 1_000_000
)

// Streaming returns the treatment of streamed responses under l, or nil unless tokens determine its cost.
func (l *Limit) Streaming() *Streaming {
	if l.cost.ai == nil {
		return nil
	}
	return &l.cost.ai.streaming
}

func (c *compiler) readStreaming(n *parse.Node, s *Streaming) {
	o := c.Object(n, streamingTable)
	if o == nil {
		return
	}
	if f := o.Field("buffer_tokens"); f != nil {
		if v, ok := c.Whole(f, "buffer_tokens", 1, maxStreamTokens); ok {
			s.Every = int64(v)
		}
	}
	if f := o.Field("on_limit_exceeded"); f != nil {
		if i := c.Choice(f, "on_limit_exceeded", streamWords, nil); i >= 0 {
			s.OnLimit = StreamLimit(i)
		}
	}
	if f := o.Field("include_partial_usage"); f != nil {
		s.Partial, _ = c.Bool(f, "include_partial_usage")
	}
	if f := o.Field("ask_usage"); f != nil {
		s.AskUsage, _ = c.Bool(f, "ask_usage")
	}
	if f := o.Field("enabled"); f != nil {
		if on, ok := c.Bool(f, "enabled"); ok && !on {
			s.OnLimit = StreamContinue
		}
	}
}
