// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/trace"
)

// JSONLines writes decisions, an object a line:
//
//	{"at":12.5,"allowed":false,"rule":"free","reason":"token_bucket_exceeded","remaining":0,"retry_after":0.1,"full_after":2}
//
// Times are in seconds and exact to the microsecond. The fields are those of
// the bucket that decided: the one with the longest wait or, where allowed, the
// one with the least remaining. retry_after is 0 where allowed and null where no
// wait helps; remaining is what would still be admitted. Where no bucket decided,
// remaining and full_after are null; where no rule applied, rule is empty as
// well. A request that a leaky bucket admitted to start later has a "wait" behind
// its retry_after.
//
// It is not safe for concurrent use.
type JSONLines struct {
	w     *bufio.Writer
	line  []byte
	names names
}

// NewJSONLines returns a writer to w. Its lines are buffered until [JSONLines.Flush].
func NewJSONLines(w io.Writer) *JSONLines {
	return &JSONLines{w: bufio.NewWriterSize(w, 1<<16), names: names{}}
}

// Write writes one line.
func (j *JSONLines) Write(req *trace.Request, d *mete.Decision) error {
	b := append(j.line[:0], `{"at":`...)
	b = api.AppendMicros(b, int64(req.At))
	b = append(b, `,"allowed":`...)
	b = strconv.AppendBool(b, d.Allowed)
	b = append(b, `,"rule":`...)
	b = append(b, j.names.quote(d.Rule)...)
	b = append(b, `,"reason":`...)
	b = append(b, j.names.quote(d.Reason)...)
	decider := d.Decider()
	b = append(b, `,"remaining":`...)
	if decider == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, decider.Room().Whole(), 10)
	}
	b = append(b, `,"retry_after":`...)
	b = api.Seconds(d.RetryAfter).Append(b)
	if d.Wait > 0 {
		b = append(b, `,"wait":`...)
		b = api.Seconds(d.Wait).Append(b)
	}
	b = append(b, `,"full_after":`...)
	if decider == nil {
		b = append(b, "null"...)
	} else {
		b = api.Seconds(decider.FullAfter()).Append(b)
	}
	j.line = append(b, "}\n"...)
	_, err := j.w.Write(j.line)
	return err
}

// Flush writes what is buffered.
func (j *JSONLines) Flush() error { return j.w.Flush() }

// names are names of rules and reasons as JSON strings: there are few, and many
// lines.
type names map[string][]byte

// quote returns s as a JSON string.
func (n names) quote(s string) []byte {
	quoted, ok := n[s]
	if !ok {
		quoted, _ = json.Marshal(s) // a string can always be encoded
		n[s] = quoted
	}
	return quoted
}
