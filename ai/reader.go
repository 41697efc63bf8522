// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"
)

// A Reader reads the usage of one response while a proxy copies the body. Each Write reads a piece of any size, at once,
// in the caller's goroutine, and keeps no reference to it. Bodies of any length are read: the reader holds none of them.
// It is not safe for concurrent use. The caller must close it.
type Reader struct {
	format  Format
	framing framing
	walker  walker
	sse     sse
	frames  frames
	gzip    *gunzip // nil without compression, and after Close
	packed  bool    // the body is compressed

	current  reported // the last value of each number
	bytes    int64
	failed   bool
	final    bool
	err      error
	created  int64 // of the stream, in Unix seconds
	position int   // behind the bytes that the framing has read

	progress progress // of the last document
	forward  progress // of the last complete event
	eventEnd int      // within the current piece, -1 without an end

	until   func() bool // see WriteUntil; nil otherwise
	stopped bool        // until has returned true
}

// A progress has the state of the stream that its last events depend on.
type progress struct {
	ended    bool
	done     bool  // the last marker is there, such as [DONE]
	elements int   // of a root array
	block    int64 // the open content block, -1 without one, or the last choice of OpenAI
	sequence int64 // of the last event
}

// A framing is the way in which a body holds JSON.
type framing uint8

const (
	framingUnknown framing = iota // until the first byte
	framingJSON                   // one object, objects one after the other, or an array of objects
	framingSSE
	framingFrames
	framingOpaque // bytes that cannot be read
)

// A State tells how much of the usage is known.
type State uint8

// The states.
const (
	NoUsage      State = iota // the response has reported no usage, or an invalid one
	PartialUsage              // the answer continues, and its usage can rise
	FinalUsage                // the usage of the whole answer
)

// A Result has the facts of the bytes that a [Reader] has read.
type Result struct {
	Usage Usage // the last one, zero with NoUsage
	State State

	Text  Text  // produced by the model and contained in the body: answers, reasoning, tool calls
	Bytes int64 // of the body after decompression, or of the compressed one if it cannot be decompressed

	// Ended reports whether the answer is complete. Servers that omit a last marker such as [DONE] make no difference.
	Ended  bool
	Failed bool // the provider reported an error

	// Err is an [Error], or nil. The usage is unknown if it is not nil. A body that breaks behind its final usage has no
	// error.
	Err error
}

// Settle returns the usage to charge. The arguments are estimates: of the prompt, and of the tokens of Text. A final
// usage counts as it is. A partial one has at least as many tokens as the text: a client that disconnects early pays for
// the text that it has received. Without usage, the estimates count.
//
// If Err is not nil, Text can be too short. The caller then passes the completion that it holds.
func (r Result) Settle(prompt, completion int64) Usage {
	u := r.Usage
	switch r.State {
	case NoUsage:
		return Usage{Input: prompt, Output: completion}
	case PartialUsage:
		u.Output = max(u.Output, completion-u.Reasoning)
	}
	return u
}

// NewReader returns a reader for a response of a format with these header fields. Only the content types of streams
// matter. For others, the first byte of the body tells JSON from events. Of the content codings, it reads gzip and
// identity. With another one, Result has an [Error] of kind UnknownEncoding, and only Bytes counts.
func NewReader(f Format, contentType, contentEncoding string) *Reader {
	r := &Reader{format: f, eventEnd: -1, progress: progress{block: -1}, forward: progress{block: -1}}
	if int(f) >= len(responseTrees) {
		f = 0
	}
	r.walker.tree = responseTrees[f]
	r.walker.onEnd = r.endDocument
	r.walker.reset()
	switch mediaType, _, _ := mime.ParseMediaType(contentType); mediaType {
	case "text/event-stream":
		r.framing = framingSSE
	case "application/vnd.amazon.eventstream":
		r.framing = framingFrames
	}
	if f == 0 {
		r.framing, r.err = framingOpaque, &Error{InvalidJSON, "no format: use a format of DetectFormat"}
	}
	switch coding := strings.ToLower(strings.TrimSpace(contentEncoding)); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		r.gzip, r.packed = newGunzip(r.read), true
	default:
		r.framing = framingOpaque
		r.err = &Error{UnknownEncoding, fmt.Sprintf("%q: send Accept-Encoding: gzip, identity to the provider", coding)}
	}
	return r
}

// Write reads the next bytes of the body. It returns len(p) and no error, also for a body that it cannot read.
func (r *Reader) Write(p []byte) (int, error) {
	r.eventEnd = -1
	if len(p) == 0 {
		return 0, nil
	}
	if r.gzip == nil || r.framing == framingOpaque {
		r.read(p)
		return len(p), nil
	}
	if err := r.gzip.write(p); err != nil {
		r.stop(&Error{InvalidEncoding, err.Error()})
	}
	r.eventEnd = -1 // positions in the decompressed body mean nothing to the caller
	return len(p), nil
}

// WriteUntil is a Write that calls stop after each complete event. If stop returns true, the bytes behind the event remain
// unread, and WriteUntil returns their position. It calls stop only where [Reader.EventEnd] would tell a position.
func (r *Reader) WriteUntil(p []byte, stop func() bool) (n int, stopped bool) {
	if !r.packed {
		r.until, r.stopped = stop, false
	}
	r.Write(p) // never fails
	if r.until = nil; r.stopped {
		r.stopped = false
		return r.eventEnd, true
	}
	return len(p), false
}

// Close reads the rest of a cut gzip stream and frees its memory. The result remains readable.
func (r *Reader) Close() error {
	if r.gzip != nil {
		r.gzip.close()
		r.gzip = nil
		r.eventEnd = -1
	}
	return nil
}

// Result returns the facts so far. It can be called at any time, also after Close.
func (r *Reader) Result() Result {
	result := Result{Text: r.walker.facts.text, Bytes: r.bytes, Ended: r.progress.ended, Failed: r.failed, Err: r.err}
	if r.err != nil && !r.final || r.current.seen&usageFields == 0 {
		return result
	}
	if result.Usage, result.Err = r.current.usage(r.format); result.Err != nil {
		return result
	}
	if result.State = PartialUsage; r.final {
		result.State = FinalUsage
	}
	return result
}

// Model returns the model that the response has named so far, or "".
func (r *Reader) Model() string {
	var model string
	if json.Unmarshal(slices.Concat([]byte{'"'}, r.walker.facts.model.text(), []byte{'"'}), &model) != nil {
		return ""
	}
	return model
}

// EventEnd returns the position behind the last complete event within the bytes of the last Write, or -1 if no event
// ended there. A proxy that cuts a stream forwards these bytes, and then the events of [Reader.AppendEnd] or
// [Reader.AppendError]. It is always -1 for JSON objects, which cannot be cut, and for gzip.
func (r *Reader) EventEnd() int { return r.eventEnd }

// read reads decompressed bytes.
func (r *Reader) read(p []byte) {
	r.bytes += int64(len(p))
	r.position = 0
	if r.framing == framingUnknown {
		r.framing = detectFraming(p)
	}
	switch r.framing {
	case framingJSON:
		r.readJSON(p)
	case framingSSE:
		r.readSSE(p)
	case framingFrames:
		r.readFrames(p)
	}
}

// detectFraming looks at the first byte that is not white space.
func detectFraming(p []byte) framing {
	i := skipSpace(p, 0)
	switch {
	case i == len(p):
		return framingUnknown
	case p[i] == '{' || p[i] == '[':
		return framingJSON
	}
	return framingSSE
}

// readJSON reads pieces between the ends of root objects, to know their positions.
func (r *Reader) readJSON(p []byte) {
	for len(p) > 0 && !r.stopped {
		before := r.progress.elements
		n := r.walker.feedObject(p)
		p = p[n:]
		r.position += n
		if r.progress.elements > before && r.walker.depth > 0 {
			r.endEvent(r.position)
		}
	}
}

// endEvent notes a place at which the stream can be cut.
func (r *Reader) endEvent(position int) {
	r.eventEnd = position
	r.forward = r.progress
	if r.until != nil {
		r.stopped = r.until()
	}
}

// stop ends the reading of a broken body.
func (r *Reader) stop(err error) {
	if r.framing != framingOpaque {
		r.framing, r.err = framingOpaque, err
	}
}

// endDocument takes over the facts of an event or of a JSON body.
func (r *Reader) endDocument() {
	r.progress.elements++
	if r.framing == framingFrames {
		return // until the checksum is read
	}
	r.commit()
}

func (r *Reader) commit() {
	f := &r.walker.facts
	numbers := &f.reported
	switch f.kind {
	case blockStart:
		r.progress.block = numbers.number[fIndex]
	case blockStop:
		r.progress.block = -1
	case messageStop, responseEnd:
		r.progress.ended, r.progress.done = true, true
	case errorEvent:
		r.failed = true
	}
	if numbers.seen&(1<<fSequence) != 0 {
		r.progress.sequence = numbers.number[fSequence]
	}
	if numbers.seen&(1<<fCreated) != 0 {
		r.created = numbers.number[fCreated]
	}
	if r.format == OpenAIChat || r.format == OpenAICompletions {
		r.progress.block = max(r.progress.block, numbers.number[fIndex])
	}
	whole := r.framing == framingJSON && r.walker.depth == 0
	r.progress.ended = r.progress.ended || f.finished || whole
	r.failed = r.failed || f.failed
	if numbers.seen&usageFields != 0 {
		if r.framing == framingJSON && r.format.isOpenAI() && r.progress.elements > 1 {
			r.current.add(numbers) // an array has the answers of several models
		} else {
			r.current.overlay(numbers)
		}
		r.final = r.progress.ended || r.format == Bedrock // which reports it once
	}
	f.reset()
}
