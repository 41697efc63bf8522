// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
)

// A decoder reads one body from left to right. It exists because encoding/json
// takes the last of two equal members, matches names in any case and does not
// know the place of a mistake. After the first mistake it reads nothing more. What it
// has read is good until it is told to forget; only strings may be kept.
type decoder struct {
	scanner
	path    []string // of the value being read
	problem *api.Problem

	requests []mete.Request
	facts    []*facts // of the requests, in a place that stays: those before used
	used     int
	names    spellings

	longest time.Duration // of max_wait
}

// forget lets go of all that was read, but for the memory of it.
func (d *decoder) forget() {
	clear(d.requests)
	clear(d.path[:cap(d.path)])
	for _, f := range d.facts[:d.used] {
		f.forget()
	}
	d.scanner, d.problem = scanner{}, nil
	d.requests, d.path, d.used = d.requests[:0], d.path[:0], 0
}

// newFacts returns facts for one request, of which there are none yet.
func (d *decoder) newFacts() *facts {
	if d.used == len(d.facts) {
		d.facts = append(d.facts, new(facts))
	}
	d.used++
	return d.facts[d.used-1]
}

// members reads an object. It yields the names of its members, in order, to a
// body that reads the values. Names must be among known, each at most once, and a
// member that is null is as one that is left out, unless known is nil.
func (d *decoder) members(known []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen, depth := uint(0), len(d.path)
		for first := true; d.more('{', '}', first); first = false {
			name, ok := d.string()
			if !ok {
				d.mistake("the name of a member, in quotes,") // and still at the place of the one before
				return
			}
			if d.path = append(d.path[:depth], name); known != nil {
				bit := uint(1) << (slices.Index(known, name) + 1)
				if bit == 1 {
					d.fail("unknown member; the known ones are " + strings.Join(known, ", "))
				} else if seen&bit != 0 {
					d.fail("the member is given twice; say it once")
				}
				seen |= bit
			}
			if d.problem == nil && !d.skip(':') {
				d.mistake("a colon")
			}
			if d.problem == nil && known != nil && d.null() {
				continue
			}
			if d.problem != nil || !yield(name) {
				return
			}
		}
		if d.problem == nil {
			d.path = d.path[:depth]
		}
	}
}

// elements reads an array. It yields the indexes of its elements to a body that
// reads them.
func (d *decoder) elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		i, depth := 0, len(d.path)
		for ; d.more('[', ']', i == 0); i++ {
			d.path = append(d.path[:depth], strconv.Itoa(i))
			if !yield(i) {
				return
			}
		}
		if d.problem == nil {
			d.path = d.path[:depth]
		}
	}
}

// more reads what stands between the parts of an object or array, from its
// opening bracket to its closing one, and reports whether a part follows.
func (d *decoder) more(opening, closing byte, first bool) bool {
	switch {
	case d.problem != nil:
		return false
	case first && !d.skip(opening):
		switch next := d.peek(); {
		case !startsValue(next):
			d.mistake("a value")
		case opening == '{':
			d.fail("this is not an object; write one in {}")
		default:
			d.fail("this is not an array; write one in []")
		}
		return false
	case first && d.skip(closing), !first && d.skip(closing):
		return false
	case !first && !d.skip(','):
		d.mistake("a comma or the end in " + string(closing))
		return false
	}
	return true
}

// want reads a string. It fails with detail where there is another value.
func (d *decoder) want(detail string) string {
	value, ok := d.string()
	switch next := d.peek(); {
	case ok:
	case next != '"' && startsValue(next):
		d.fail(detail)
	default:
		d.mistake("a string")
	}
	return value
}

const halfCharacter = `a string has an escape for half of a character (\ud800 to \udfff), which is not part of a pair; send the whole character`

// mistake fails because what comes next is not what JSON wants there.
func (d *decoder) mistake(want string) {
	switch {
	case d.lone:
		d.fail(halfCharacter)
	case d.end() && strings.TrimSpace(d.text) == "":
		d.fail(`the body is empty; send JSON such as {"attributes": {"header:x-api-key": "k1"}}`)
	case d.end():
		d.fail("the body ends early; send all of the JSON object")
	default:
		d.fail("this is not JSON: " + clip(strconv.Quote(d.word())) + " stands at byte " + strconv.Itoa(d.at) + " where " + want + " should be")
	}
}

// fail notes a mistake at the current place. The first one stays.
func (d *decoder) fail(detail string) {
	if d.problem != nil {
		return
	}
	d.problem = api.NewProblem(http.StatusBadRequest, detail)
	for _, name := range d.path {
		d.problem.Pointer += "/" + pointerEscaper.Replace(clip(name))
	}
}

// pointerEscaper escapes one part of a JSON Pointer (RFC 6901 §3).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// clip cuts a foreign string to a length that people read.
func clip(s string) string {
	const longest = 80
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "…"
}
