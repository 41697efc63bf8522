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

// sheetBytes are enough for the fields of a few limits; more are allocated.
const sheetBytes = 384

// A sheet collects header fields, so that all of them are made together.
type sheet struct {
	buf    []byte
	n      int
	fields [fieldCount]field
	starts [fieldCount]int // where in buf each field begins
	items  []*item         // of the limits that are in the fields of the draft
	space  [4]*item        // for items

	// The quota of the limit that decided, which several fields have.
	hasQuota  bool
	available int64
	effective time.Duration
}

var sheets = sync.Pool{New: func() any { return &sheet{buf: make([]byte, 0, sheetBytes)} }}

func newSheet() *sheet {
	s := sheets.Get().(*sheet)
	s.buf, s.n, s.items, s.hasQuota = s.buf[:0], 0, s.space[:0], false
	return s
}

func (s *sheet) release() { sheets.Put(s) }

// quota returns the quota of a limit, and computes that of the first limit once.
func (s *sheet) quota(limit, first *mete.Status) (available int64, effective time.Duration) {
	if limit != first {
		return quota(limit)
	}
	if !s.hasQuota {
		s.available, s.effective = quota(limit)
		s.hasQuota = true
	}
	return s.available, s.effective
}

// begin begins a field. It ends where the next one begins; one that stays empty
// is not sent. Each field is begun at most once.
func (s *sheet) begin(f field) {
	s.fields[s.n], s.starts[s.n] = f, len(s.buf)
	s.n++
}

// item begins another item of the field.
func (s *sheet) item() {
	if len(s.buf) > s.starts[s.n-1] {
		s.text(", ")
	}
}

func (s *sheet) text(v string) { s.buf = append(s.buf, v...) }
func (s *sheet) int(v int64)   { s.buf = strconv.AppendInt(s.buf, v, 10) }

func (s *sheet) textField(f field, v string) {
	s.begin(f)
	s.text(v)
}

func (s *sheet) intField(f field, v int64) {
	s.begin(f)
	s.int(v)
}

// A page is the memory of the fields of an answer with one or two limits, or of a denial.
type page struct {
	values [pageValues]string // that begin in text
	text   [pageBytes]byte
}

// Together they fill a size class of 320 bytes.
const (
	pageValues = 8
	pageBytes  = 320 - pageValues*16
)

// memory returns the text of the sheet, and room for a value of each field. Most answers take
// one allocation.
func (s *sheet) memory() (text string, values []string) {
	if len(s.buf) > pageBytes || s.n > pageValues {
		return string(s.buf), make([]string, s.n)
	}
	p := new(page)
	n := copy(p.text[:], s.buf)
	return unsafe.String(&p.text[0], n), p.values[:s.n] // no code changes the text again
}

// set replaces the fields in h.
func (s *sheet) set(h http.Header) {
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
