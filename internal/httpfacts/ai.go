// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/metehq/mete/ai"
)

// AI configures the attributes of requests to language models.
type AI struct {
	// Ratios learns the tokens of a byte, per model. Nil estimates as simple_word does.
	Ratios *ai.Ratios

	// Tiktoken counts the tokens of a prompt for token_source: tiktoken. Nil estimates as simple_word does.
	Tiktoken ai.Estimator
}

// A requestBody is the beginning of the body of a request, which was read for a rule.
type requestBody struct {
	read    bool
	begin   []byte // at most ai.MaxRequestBytes
	length  int64  // of the whole body, or of its beginning if that is unknown
	request *ai.Request
	key     string  // see Facts.fingerprint
	whole   bool    // a fingerprint can cover it
	dispute dispute // with any rule that counts tokens
}

// ai returns the attribute of a request to a language model. It reads the body once, and leaves it in the request for the
// handler. A request that is not to a language model has only a fingerprint.
func (f *Facts) ai(name string) (string, bool) {
	if !f.body.read {
		f.readBody()
	}
	if name == "fingerprint" {
		return f.fingerprint()
	}
	q := f.body.request
	if q == nil {
		return "", false
	}
	config := &f.source.config.AI
	tokens := int64(0)
	switch name {
	case "model":
		return q.Model, true // some servers have a default
	case "max_tokens":
		if q.MaxTokens == 0 {
			return "", false
		}
		tokens = q.Completion(q.MaxTokens)
	case "choices":
		tokens = q.Choices
	case "prompt_tokens/tiktoken":
		if tokens = ai.SimpleWord(q); config.Tiktoken != nil && !q.Unparsed {
			tokens = config.Tiktoken(q)
		}
	case "prompt_tokens/learned":
		if tokens = ai.SimpleWord(q); config.Ratios != nil {
			tokens = config.Ratios.Estimate(q)
		}
	default:
		tokens = ai.SimpleWord(q)
	}
	return strconv.FormatInt(tokens, 10), true
}

// AIRequest returns the request to a language model if a rule has read its body, or nil.
func (f *Facts) AIRequest() *ai.Request { return f.body.request }

// BeforeRead sets a function that is called before each read of the body, to set its deadline.
func (f *Facts) BeforeRead(call func()) { f.beforeRead = call }

// BodyFailed reports whether the client did not send the part of its body that a rule reads.
func (f *Facts) BodyFailed() bool {
	held, ok := f.r.Body.(*heldBody)
	return ok && held.failed()
}

// DropBody releases the memory of the body. The request still has it.
func (f *Facts) DropBody() { f.body.begin = nil }

// readBody reads the beginning of the body of a request to a language model, or of a request that a fingerprint can have. A body
// that the API of the model would not accept is disputed: its tokens are unknown.
func (f *Facts) readBody() {
	b := &f.body
	b.read = true
	path, ambiguous := f.Place() // as an upstream reads it
	format, toModel := ai.DetectFormat(method(f.r), path)
	if _, model := ai.DetectFormat(http.MethodPost, path); model && f.disputeCall() {
		return
	}
	if toModel && f.source.config.HeaderOnly {
		if b.request, _ = ai.ReadRequest(format, path, []byte("{}"), 2); b.request != nil {
			b.request.Text = ai.Text{}
		}
		return
	}
	small := f.r.ContentLength >= 0 && f.r.ContentLength <= ai.MaxRequestBytes && !strings.HasPrefix(f.r.Header.Get("Content-Type"), "application/grpc")
	if b.whole = (small || toModel) && !f.source.config.HeaderOnly; !b.whole {
		return // another body may be a stream that waits for its response
	}
	if f.r.Body != nil && f.r.Body != http.NoBody {
		held, full := f.holdBody(f.r.Body, f.r.ContentLength)
		f.r.Body, b.dispute = held, full
		b.begin, b.length = held.begin, max(int64(len(held.begin)), f.r.ContentLength)
		b.whole = full.kind == undisputed && (f.r.ContentLength >= 0 || len(b.begin) <= ai.MaxRequestBytes)
	}
	if !toModel || b.dispute.kind != undisputed {
		return
	}
	switch coding := f.r.Header.Get("Content-Encoding"); {
	case ambiguous:
		b.dispute = dispute{kind: disputedPlace}
	case coding != "" && !strings.EqualFold(coding, "identity"):
		b.dispute = dispute{kind: codedBody, name: coding}
	}
	request, err := ai.ReadRequest(format, path, b.begin, b.length)
	if err == nil && request.Unparsed && len(b.begin) > ai.MaxRequestBytes {
		err = request.Tail().Check(b.begin[ai.MaxRequestBytes:])
	}
	switch {
	case b.dispute.kind != undisputed:
	case err != nil:
		b.dispute = dispute{kind: invalidBody, name: err.Error()}
	case request.Unparsed && f.r.ContentLength < 0:
		b.dispute = dispute{kind: invalidBody, name: fmt.Sprintf("the length of a body above %d bytes must be known, because each byte counts: send it with a Content-Length", ai.MaxRequestBytes)}
	case request.Unparsed && request.Model == "":
		b.dispute = dispute{kind: invalidBody, name: fmt.Sprintf("the first %d bytes of the body have no model: write it before the messages", ai.MaxRequestBytes)}
	}
	if b.request = request; request == nil {
		b.request = &ai.Request{Format: format, Choices: 1}
	} else if request.Unparsed && f.enforcesAI() {
		f.r.Body.(*heldBody).tail = request.Tail()
		f.r.GetBody = nil // a second body would not be checked
	}
}

// disputeCall disputes a request to the path of a language model that a server could take for another one. It could read
// messages over the upgraded connection, or take POST from a field. Java's client asks for h2c, which carries requests of its
// own: no server with limits may accept it.
func (f *Facts) disputeCall() bool {
	for _, line := range f.r.Header["Upgrade"] {
		for protocol := range strings.SplitSeq(line, ",") {
			if protocol = strings.TrimSpace(protocol); protocol != "" && !strings.EqualFold(protocol, "h2c") {
				f.body.dispute = dispute{kind: upgradedCall, name: protocol}
			}
		}
	}
	if sent := f.methodOverride(); sent != "" {
		f.body.dispute = dispute{kind: disputedMethod, sent: sent}
	}
	return f.body.dispute.kind != undisputed
}

// ReplaceBody replaces the body of a request, which [Facts.Body] has returned. It changes nothing and returns false if the
// program has wrapped that body.
func ReplaceBody(r *http.Request, body []byte) bool {
	held, ok := r.Body.(*heldBody)
	if !ok {
		return false
	}
	held.setBegin(body)
	r.ContentLength = int64(len(body))
	if r.GetBody != nil { // an outgoing request is sent again on another connection
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return true
}

// BodyError returns the problem of a body that became invalid behind the part that rules read, for the client. It is empty if err
// is another error.
func BodyError(err error) string {
	if invalid, ok := errors.AsType[*ai.Error](err); ok {
		return invalidBodyText(invalid.Error())
	}
	return ""
}

// Body returns the whole body, and false if it is longer than a rule reads.
func (f *Facts) Body() ([]byte, bool) {
	return f.body.begin, f.body.request != nil && !f.body.request.Unparsed
}

// fingerprint returns a hash that two requests share only if they have the same method, path, query and body. Of a body above
// ai.MaxRequestBytes, the length and the first bytes count. Such a body without a length has no fingerprint. The order of
// query parameters and of members in JSON does not matter, and neither does white space between them. The hash is too long for
// a bucket's key, which therefore contains a keyed hash of it: see [policy.Options.HashKey].
func (f *Facts) fingerprint() (string, bool) {
	b := &f.body
	if b.key != "" || !b.whole {
		return b.key, b.whole
	}
	h := sha512.New()
	path, _ := f.Place()
	query := f.r.URL.RawQuery
	if values, err := url.ParseQuery(query); err == nil {
		query = values.Encode()
	}
	for _, part := range []string{method(f.r), path, query} {
		h.Write(strconv.AppendQuote(nil, part))
	}
	if b.length > int64(len(b.begin)) { // the rest is not in memory
		h.Write(strconv.AppendInt(nil, b.length, 10))
	}
	if canonical, ok := canonicalJSON(b.begin); ok {
		h.Write(canonical)
	} else {
		h.Write(b.begin)
	}
	b.key = hex.EncodeToString(h.Sum(nil))
	return b.key, true
}
