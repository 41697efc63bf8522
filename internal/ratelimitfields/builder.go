// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"net/http"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/metehq/mete"
)

// builderBytes suffices for the fields of a few limits. More is allocated if needed.
const builderBytes = 384

// A fieldBuilder collects header fields, so that they share one allocation.
type fieldBuilder struct {
	buf    []byte
	n      int
	fields [fieldCount]field
	starts [fieldCount]int // start of each field in buf
	items  []*item         // items of the limits in the draft fields
	space  [4]*item        // initial space for items

	// The quota of the deciding limit, which several fields use.
	hasQuota  bool
	available int64
	effective time.Duration
}

var builders = sync.Pool{New: func() any { return &fieldBuilder{buf: make([]byte, 0, builderBytes)} }}

func newFieldBuilder() *fieldBuilder {
	s := builders.Get().(*fieldBuilder)
	s.buf, s.n, s.items, s.hasQuota = s.buf[:0], 0, s.space[:0], false
	return s
}

func (s *fieldBuilder) release() { builders.Put(s) }

func (s *fieldBuilder) quota(limit, first *mete.Status) (available int64, effective time.Duration) {
	if limit != first {
		return quota(limit)
	}
	if !s.hasQuota {
		s.available, s.effective = quota(limit)
		s.hasQuota = true
	}
	return s.available, s.effective
}

// begin starts a field, which ends at the next begin. An empty field is not sent. Each field may be started once.
func (s *fieldBuilder) begin(f field) {
	s.fields[s.n], s.starts[s.n] = f, len(s.buf)
	s.n++
}

func (s *fieldBuilder) item() {
	if len(s.buf) > s.starts[s.n-1] {
		s.text(", ")
	}
}

func (s *fieldBuilder) text(v string) { s.buf = append(s.buf, v...) }
func (s *fieldBuilder) int(v int64)   { s.buf = strconv.AppendInt(s.buf, v, 10) }

func (s *fieldBuilder) textField(f field, v string) {
	s.begin(f)
	s.text(v)
}

func (s *fieldBuilder) intField(f field, v int64) {
	s.begin(f)
	s.int(v)
}

// A fieldMemory holds the fields of a response with one or two limits, or of a denial.
type fieldMemory struct {
	values [memoryValues]string // substrings of text
	text   [memoryBytes]byte
}

// Together they fill a size class of 320 bytes.
const (
	memoryValues = 8
	memoryBytes  = 320 - memoryValues*16
)

// memory returns the text of all fields and space for their values, mostly in one allocation.
func (s *fieldBuilder) memory() (text string, values []string) {
	if len(s.buf) > memoryBytes || s.n > memoryValues {
		return string(s.buf), make([]string, s.n)
	}
	p := new(fieldMemory)
	n := copy(p.text[:], s.buf)
	return unsafe.String(&p.text[0], n), p.values[:s.n] // the text is never modified again
}

func (s *fieldBuilder) set(h http.Header) {
	if len(s.buf) == 0 {
		return
	}
	all, values := s.memory()
	for i := range s.n {
		end := len(all)
		if i+1 < s.n {
			end = s.starts[i+1]
		}
		if values[i] = all[s.starts[i]:end]; values[i] != "" {
			h[fieldNames[s.fields[i]]] = values[i : i+1 : i+1]
		}
	}
}
