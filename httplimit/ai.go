// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// An aiCall is an admitted request to a language model and the sent part of its response. It charges the tokens of a
// stream while it runs. One goroutine uses it.
type aiCall struct {
	reservation *mete.Reservation
	ratios      *ai.Ratios // may be nil
	request     *ai.Request
	prompt      int64 // estimated tokens
	streaming   policy.Streaming
	limited     bool    // an enforced limit counts tokens
	asking      []byte  // the body that asks for usage, until prepare; nil if the client's is forwarded
	hides       bool    // the client did not ask for usage
	packed      bool    // the response is compressed: it cannot be changed
	readOn      *readOn // nil if the work ends with the client

	status int
	reader *ai.Reader // nil before the response
	filter ai.UsageFilter
	next   int64 // tokens of the completion at which the next charge is due
	step   []byte

	exceeded func() bool // charges an event of a stream, and tells whether the stream ends; nil without enforced limits
	stopping bool        // the stream ends after its current event
	cut      bool        // the stream was ended
	broken   bool        // the response broke off
}

// errStreamCut ends the work of the handler after the stream of its response was ended.
var errStreamCut = errors.New("httplimit: the stream ended because a limit has no tokens left")

// newAICall returns the call of an admitted request, or nil if no charge depends on the tokens of a language model.
func newAICall(r *mete.Reservation, facts *httpfacts.Facts, ratios *ai.Ratios) *aiCall {
	q := facts.AIRequest()
	if r == nil || q == nil || !r.CountsTokens() {
		return nil
	}
	c := &aiCall{reservation: r, ratios: ratios, prompt: ai.SimpleWord(q)}
	c.request = &ai.Request{Format: q.Format, Model: q.Model, MaxTokens: q.MaxTokens, Choices: q.Choices, Stream: q.Stream, AsksUsage: q.AsksUsage,
		Text: q.Text, Media: q.Media, Unparsed: q.Unparsed} // without the body
	if ratios != nil {
		c.prompt = max(c.prompt, ratios.Estimate(q))
	}
	c.streaming, c.limited = r.Streaming()
	if body, whole := facts.Body(); c.limited && c.streaming.AskUsage && whole && !q.AsksUsage && (q.Format == ai.OpenAIChat || q.Format == ai.OpenAICompletions) {
		if asking, differs := ai.AskForUsage(body); differs {
			c.asking = asking
		}
	}
	return c
}

// detach returns the request for the handler. Its work does not end with the client if an enforced limit needs the usage. A
// connection that the handler takes over has no usage, and a client that is gone already needs no work.
func (c *aiCall) detach(r *http.Request, of *readOns) *http.Request {
	if !c.limited || r.Header["Upgrade"] != nil || r.Context().Err() != nil {
		return r
	}
	c.readOn = of.watch(r.Context())
	return r.WithContext(c.readOn.ctx)
}

// prepare asks the handler for a response whose tokens can be read. Rules in shadow change nothing.
func (c *aiCall) prepare(r *http.Request) {
	if !c.limited {
		return
	}
	if c.asking != nil {
		c.hides = httpfacts.ReplaceBody(r, c.asking)
		c.asking = nil
	}
	r.Header = maps.Clone(r.Header)
	r.Header["Accept-Encoding"] = []string{c.coding(r.Header)}
}

// coding returns the content codings of the response that can be read. Streams are not compressed, because they may have to
// be cut. A body that was not parsed can ask for one.
func (c *aiCall) coding(h http.Header) string {
	if c.request.Stream || c.request.Unparsed {
		return "identity"
	}
	for item := range strings.SplitSeq(strings.Join(h["Accept-Encoding"], ","), ",") {
		name, quality, _ := strings.Cut(strings.ReplaceAll(item, " ", ""), ";q=")
		if strings.EqualFold(name, "gzip") && (quality == "" || strings.Trim(quality, "0.") != "") {
			return "gzip"
		}
	}
	return "identity"
}

// begin starts to read the response.
func (c *aiCall) begin(ctx context.Context, status int, h http.Header) {
	c.status = status
	c.reader = ai.NewReader(c.request.Format, h.Get("Content-Type"), h.Get("Content-Encoding"))
	c.next = c.streaming.Every
	media := h.Get("Content-Type")
	events := strings.HasPrefix(media, "text/event-stream")
	stream := c.request.Stream || events || strings.HasPrefix(media, "application/vnd.amazon.eventstream")
	coding := h.Get("Content-Encoding")
	c.packed = coding != "" && !strings.EqualFold(coding, "identity")
	if c.limited && stream {
		delete(h, "Content-Length") // its end may come earlier
		c.exceeded = func() bool {
			c.stopping = c.stopping || !c.mayContinue(ctx)
			return c.stopping
		}
	}
	c.hides = c.hides && events && !c.packed
}

// write passes the next bytes of the response to send, or the end of a stream that may not go on. It charges event by event,
// because an upstream can send many of them at once.
func (c *aiCall) write(b []byte, send func([]byte) (int, error)) (int, error) {
	if c.cut {
		return 0, errStreamCut
	}
	out := b
	if c.packed && c.exceeded != nil {
		if c.reader.Write(b); c.exceeded() {
			return 0, errStreamCut // without an end: the connection breaks
		}
	} else if c.exceeded == nil {
		c.reader.Write(b) // never fails
	} else if end, stopped := c.reader.WriteUntil(b, c.exceeded); stopped {
		c.cut, out = true, b[:end]
	} else if c.reader.EventEnd() != len(b) {
		c.exceeded() // a long event is charged, too
	}
	if c.hides {
		c.step = c.filter.Append(c.step[:0], out)
		out = c.step
	}
	if c.cut {
		out = c.appendEnd(slices.Clone(out))
	}
	if len(out) > 0 {
		if n, err := send(out); err != nil {
			return min(n, len(b)), err
		}
	}
	if c.cut {
		return len(b), errStreamCut
	}
	return len(b), c.readOn.count(len(b), c.readOn != nil && c.usageKnown())
}

// usageKnown reports whether the rest of the response cannot change its usage. The first of several choices can end early.
func (c *aiCall) usageKnown() bool {
	return c.request.Choices <= 1 && c.reader.Result().State == ai.FinalUsage
}

// flush returns the bytes that the filter of a response holds at its end.
func (c *aiCall) flush() []byte {
	if c.cut || !c.hides || c.reader == nil {
		return nil
	}
	return c.filter.Flush(nil)
}

// mayContinue charges the tokens of the stream since the last charge. It returns false if a limit has no tokens for it and the
// policy ends such streams.
func (c *aiCall) mayContinue(ctx context.Context) bool {
	usage := c.usageSoFar()
	if usage.Completion() < c.next {
		return true
	}
	c.next = usage.Completion() + c.streaming.Every
	allowed, err := c.reservation.Extend(ctx, c.response(&usage), c.streaming.OnLimit == policy.StreamContinue)
	// Without the store, the end of the response charges the rest. A limit may also refuse a debt.
	return allowed || err != nil || c.streaming.OnLimit == policy.StreamContinue
}

// appendEnd appends the end of a cut stream.
func (c *aiCall) appendEnd(dst []byte) []byte {
	if c.streaming.OnLimit == policy.StreamError {
		return c.reader.AppendError(dst, "The rate limit of tokens is exceeded, so the stream ends here.")
	}
	usage := ai.Usage{}
	if c.streaming.Partial && !c.hides {
		usage = c.usageSoFar()
	}
	return c.reader.AppendEnd(dst, usage)
}

// usageSoFar returns the reported usage of the response, plus an estimate of the text that it does not include.
func (c *aiCall) usageSoFar() ai.Usage {
	result := c.reader.Result()
	unfinished := c.isUnfinished(&result) // not if the provider has reported too little
	if result.State == ai.FinalUsage && result.Usage.Completion() < leastCompletion(result.Text) {
		result.State = ai.PartialUsage
	}
	if result.State != ai.NoUsage && result.Usage.Prompt() == 0 {
		result.Usage.Input = c.prompt
	}
	completion := c.completion(result.Text)
	e, failed := errors.AsType[*ai.Error](result.Err)
	if failed && e.Kind != ai.InvalidUsage || unfinished { // a part of the text is missing
		completion = max(completion, c.request.Completion(0))
	}
	return result.Settle(c.prompt, completion)
}

// isUnfinished reports whether the answer broke off before its usage was known, or ended by the bounds of a [readOn].
func (c *aiCall) isUnfinished(r *ai.Result) bool {
	return (c.broken || c.readOn.isCut()) && r.State != ai.FinalUsage
}

func (c *aiCall) completion(t ai.Text) int64 {
	simple := ai.SimpleWord(&ai.Request{Text: t})
	if c.ratios == nil {
		return simple
	}
	learned := c.ratios.Tokens(c.request.Model, ai.CompletionSide, t)
	if most := c.request.Completion(0); most > 0 {
		learned = min(learned, most) // texts of other clients do not make this answer longer than it can be
	}
	return max(simple, learned) // nor cheaper
}

// leastBytesPerToken is how many bytes a token has at most, on the average of a whole answer.
const leastBytesPerToken = 16

// leastCompletion returns the fewest tokens that a text can have. A lower number of a provider does not count.
func leastCompletion(t ai.Text) int64 { return (t.Bytes + leastBytesPerToken - 1) / leastBytesPerToken }

func (c *aiCall) response(u *ai.Usage) policy.Response {
	return policy.Response{Status: c.status, Model: c.request.Model, ServedModel: c.servedModel(), Usage: &policy.TokenUsage{
		Input: u.Input, Cached: u.Cached, CacheWrite: u.CacheWrite, Output: u.Output, Reasoning: u.Reasoning,
	}}
}

// servedModel returns the model that the response names, or "".
func (c *aiCall) servedModel() string {
	if c.reader == nil {
		return ""
	}
	return c.reader.Model()
}

// close frees the memory of the reader.
func (c *aiCall) close() {
	if c.reader != nil {
		c.reader.Close()
	}
}

// finish adds the usage of the response to res, and learns from it. The usage stays unknown if the response cannot be read,
// so that the request keeps the charge of its estimate.
func (c *aiCall) finish(res *policy.Response) {
	res.Model = c.request.Model
	if c.reader == nil {
		return
	}
	c.close()
	result := c.reader.Result()
	if result.State == ai.NoUsage && result.Text.Bytes == 0 { // nothing of it can be counted
		return
	}
	usage := c.usageSoFar()
	res.ServedModel = c.servedModel()
	res.Usage, res.Unfinished = c.response(&usage).Usage, c.isUnfinished(&result)
	if c.ratios == nil || c.request.Unparsed || c.request.Media > 0 || result.State != ai.FinalUsage || usage != result.Usage {
		return
	}
	c.ratios.Observe(c.request.Model, ai.PromptSide, c.request.Text, usage.Prompt())
	c.ratios.Observe(c.request.Model, ai.CompletionSide, result.Text, usage.Output) // the text does not have hidden reasoning
}
