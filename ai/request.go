// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"cmp"
	"fmt"
)

const (
	// MaxRequestBytes is the length of request bodies that ReadRequest parses.
	MaxRequestBytes = 1 << 20

	// MediaTokens is the estimate for a part that is no text. Providers count 85 to 2,000 tokens for an image.
	MediaTokens = 1024
)

// A Request has the facts of a request that its cost depends on.
type Request struct {
	Format Format
	Model  string // of the path, or else of the body: servers that route by the path ignore the body's

	// MaxTokens is the requested maximum of completion tokens per choice. It is 0 without a maximum: if the member is
	// absent, null or not positive.
	MaxTokens int64

	Choices int64 // answers that the provider produces, at least 1

	Stream    bool // the response is a stream
	AsksUsage bool // the request has stream_options.include_usage
	Text      Text // of messages, system prompts and tools
	Media     int  // images, audio and files
	Unparsed  bool // the body is longer than MaxRequestBytes: Text counts all its bytes
	body      []byte
	tail      *Tail
	named     string // the model of the body
}

// ReadRequest reads a request of a format. The body holds the first bytes, and length is the number of all bytes. A body
// longer than [MaxRequestBytes] is not parsed as a whole: Text is its length, and the members of its first bytes count.
// [Request.Tail] checks the rest.
// The request refers to the body, which must not change while [Request.AppendText] can be called.
//
// The error is an [Error] of kind InvalidJSON or InvalidMember. A member that occurs twice is invalid, because providers
// disagree about the one that counts. So is another spelling of a member, such as Model, which some servers read, too.
//
// So is a body with another model than a path such as /engines/{model}/completions, because servers disagree about these, too.
// Azure and LiteLLM take the model of /openai/deployments/{model}, and Google and AWS the one of their paths.
func ReadRequest(f Format, path string, body []byte, length int64) (*Request, error) {
	r, err := readRequest(f, path, body, length)
	if err != nil {
		return nil, err
	}
	if _, at := parsePath(path); at.sole && r.named != "" && r.named != at.model {
		return nil, &Error{InvalidMember, fmt.Sprintf("the path names the model %q, and the body %q: remove the one of the body", at.model, r.named)}
	}
	return r, nil
}

func readRequest(f Format, path string, body []byte, length int64) (*Request, error) {
	if f == 0 || int(f) >= len(requestTrees) {
		return nil, &Error{InvalidMember, fmt.Sprintf("format %d: use a format of DetectFormat", f)}
	}
	r := &Request{Format: f, Unparsed: length > MaxRequestBytes || len(body) > MaxRequestBytes || length > int64(len(body))}
	r.body = body[:min(len(body), MaxRequestBytes)]
	_, at := parsePath(path)
	if r.Unparsed {
		return r.readLong(at, max(length, int64(len(body))))
	}
	if err := checkObject(r.body); err != nil {
		return nil, err
	}
	w := walker{tree: requestTrees[f]}
	w.reset()
	w.feed(r.body)
	if err := w.requestError(); err != nil {
		return nil, err
	}
	r.setFacts(&w.facts, at)
	return r, nil
}

// readLong reads the beginning of a long body.
func (r *Request) readLong(at target, length int64) (*Request, error) {
	t := &Tail{walker: walker{tree: memberTrees[r.Format]}}
	t.walker.reset()
	if i := skipSpace(r.body, 0); i == len(r.body) || r.body[i] != '{' {
		return nil, &Error{InvalidJSON, "the body must be a JSON object: it is another value"}
	}
	if t.feed(r.body); t.err != nil {
		return nil, t.err
	}
	r.setFacts(&t.walker.facts, at)
	t.numbers, t.hasModel = t.walker.facts.reported.seen, r.Model != ""
	r.Text, r.tail = Text{length, length}, t
	return r, nil
}

// Tail returns the check for the rest of a body that is longer than [MaxRequestBytes], or nil for other bodies. There is one for
// each request.
func (r *Request) Tail() *Tail { return r.tail }

func (r *Request) setFacts(facts *facts, at target) {
	n := &facts.reported.number
	r.named = unquote(facts.model.text())
	r.Model = cmp.Or(at.model, r.named)
	r.MaxTokens = max(n[fMaxTokens], n[fMaxCompletion])
	r.Choices = max(1, n[fChoices], n[fBestOf])
	r.Stream = facts.stream || at.stream
	r.AsksUsage = facts.include
	r.Text, r.Media = facts.text, facts.media
}

// Completion returns the most tokens that the answers can have: the requested maximum, or a default, for each choice.
func (r *Request) Completion(standard int64) int64 {
	perChoice := r.MaxTokens
	if perChoice == 0 {
		perChoice = standard
	}
	if perChoice > 0 && r.Choices > MaxTokens/perChoice {
		return MaxTokens
	}
	return perChoice * r.Choices
}

// AppendText appends the text that Text counts, without separators. Of a body above the bound, it is the text of the
// parsed part.
func (r *Request) AppendText(dst []byte) []byte {
	w := walker{tree: requestTrees[r.Format], text: &dst}
	w.reset()
	w.feed(r.body)
	return dst
}

func checkObject(body []byte) error {
	if at := findError(body); at >= 0 {
		return newJSONError(int64(at), int64(len(body)))
	}
	if body[skipSpace(body, 0)] != '{' {
		return &Error{InvalidJSON, "the body must be a JSON object: it is another value"}
	}
	return nil
}

func newJSONError(at, length int64) *Error {
	return &Error{InvalidJSON, fmt.Sprintf("the body must be a JSON object: it is invalid at byte %d of %d", at, length)}
}

// requestError returns the first error of the members that a request is charged by.
func (w *walker) requestError() *Error {
	if w.keys.err != nil {
		return w.keys.err
	}
	return w.facts.checkRequest()
}

func (f *facts) checkRequest() *Error {
	r := &f.reported
	for n := fMaxTokens; n <= fBestOf; n++ {
		switch bit := uint32(1) << n; {
		case r.twice&bit != 0:
			return &Error{InvalidMember, numberNames[n] + " occurs twice: remove one of them"}
		case r.invalid&bit != 0:
			return &Error{InvalidMember, fmt.Sprintf("%s must be an integer up to %d", numberNames[n], MaxTokens)}
		}
	}
	for _, m := range []struct {
		field      field
		name, want string
	}{{fModel, "model", fmt.Sprintf("a string of at most %d bytes", maxCapture)}, {fStream, "stream", "true or false"}, {fInclude, "stream_options.include_usage", "true or false"}, {fBackground, "background", "true or false"}} {
		switch bit := uint32(1) << (m.field - numbers); {
		case f.twice&bit != 0:
			return &Error{InvalidMember, m.name + " occurs twice: remove one of them"}
		case f.strange&bit != 0:
			return &Error{InvalidMember, m.name + " must be " + m.want}
		}
	}
	if f.later {
		return &Error{InvalidMember, "background must be false: the response would not have the usage"}
	}
	return nil
}
