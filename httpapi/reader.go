// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/metehq/mete/api"
)

// A reader parses one JSON body (RFC 8259) from left to right. encoding/json accepts duplicate members, ignores
// case in names and reports no position, so it cannot be used here. A reader stops at the first error. Its
// methods skip white space and do not consume a value of the wrong type.
type reader struct {
	text    string
	at      int
	half    bool     // the string at at contains an unpaired surrogate
	path    []string // path of the current value
	problem *api.Problem
}

// open starts to read a body. Callers may keep its strings.
func (d *reader) open(body []byte) *api.Problem {
	if !utf8.Valid(body) {
		// Replacing invalid bytes would give different clients one key.
		return api.NewProblem(http.StatusBadRequest, "the body is not UTF-8; send JSON in UTF-8")
	}
	d.text = string(body)
	return nil
}

func (d *reader) close() *api.Problem {
	if d.problem == nil && !d.end() {
		d.fail("unexpected text after the request; send one JSON object")
	}
	return d.problem
}

// members reads an object and yields the names of its members; the loop body reads the values. Unless known is
// nil, names must be in known and unique, and null members are skipped.
func (d *reader) members(known []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen, depth := uint(0), len(d.path)
		for first := true; d.hasMore('{', '}', first); first = false {
			name, ok := d.string()
			if !ok {
				d.failSyntax("a quoted member name") // at the position of the previous member
				return
			}
			if d.path = append(d.path[:depth], name); known != nil {
				bit := uint(1) << (slices.Index(known, name) + 1)
				if bit == 1 {
					d.fail("unknown member; use one of " + strings.Join(known, ", "))
				} else if seen&bit != 0 {
					d.fail("duplicate member; send it once")
				}
				seen |= bit
			}
			if d.problem == nil && !d.skip(':') {
				d.failSyntax("a colon")
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

// elements reads an array and yields the index of each element; the loop body reads the element.
func (d *reader) elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		i, depth := 0, len(d.path)
		for ; d.hasMore('[', ']', i == 0); i++ {
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

func (d *reader) hasMore(opening, closing byte, first bool) bool {
	switch {
	case d.problem != nil:
		return false
	case first && !d.skip(opening):
		switch {
		case !d.startsValue():
			d.failSyntax("a value")
		case opening == '{':
			d.fail("expected an object in {}")
		default:
			d.fail("expected an array in []")
		}
		return false
	case d.skip(closing):
		return false
	case !first && !d.skip(','):
		d.failSyntax("a comma or the end in " + string(closing))
		return false
	}
	return true
}

func (d *reader) wantString(detail string) string {
	value, ok := d.string()
	switch {
	case ok:
	case d.next() != '"' && d.startsValue():
		d.fail(detail)
	default:
		d.failSyntax("a string")
	}
	return value
}

func (d *reader) string() (value string, ok bool) {
	if d.next() != '"' {
		return "", false
	}
	plain := true
	for i := d.at + 1; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '"':
			quoted := d.text[d.at : i+1]
			if plain {
				value, ok = quoted[1:len(quoted)-1], true
			} else if d.half = halfCharacter(quoted); !d.half {
				var unquoted string // on the heap, unlike value
				ok = json.Unmarshal([]byte(quoted), &unquoted) == nil
				value = unquoted
			}
			if ok {
				d.at = i + 1
			}
			return value, ok
		case c == '\\':
			i++
			plain = false
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// halfCharacter reports whether JSON text contains an unpaired surrogate escape such as \ud83d. JSON allows them,
// but encoding/json reads each as U+FFFD, which would give different values one key.
func halfCharacter(text string) bool {
	high := rune(0) // high surrogate that ends at i
	for i := 0; i < len(text); i++ {
		unit := rune(0)
		if text[i] == '\\' {
			if i++; i+4 < len(text) && text[i] == 'u' {
				n, _ := strconv.ParseUint(text[i+1:i+5], 16, 16) // 0 for an invalid escape
				unit, i = rune(n), i+4
			}
		}
		switch {
		case high != 0 && utf16.DecodeRune(high, unit) != utf8.RuneError:
			high = 0
		case high != 0:
			return true
		case utf16.IsSurrogate(unit):
			high = unit
		}
	}
	return high != 0
}

func (d *reader) number() (text string, ok bool) {
	if !d.startsNumber() {
		return "", false
	}
	if text = d.word(); !json.Valid([]byte(text)) {
		return "", false
	}
	d.at += len(text)
	return text, true
}

func (d *reader) null() bool {
	if d.next() != 'n' || d.word() != "null" {
		return false
	}
	d.at += len("null")
	return true
}

// next returns the next byte that is not white space. It returns 0 at the end and for NUL, which starts no value.
func (d *reader) next() byte {
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (d *reader) end() bool {
	d.next()
	return d.at == len(d.text)
}

func (d *reader) skip(c byte) bool {
	if d.next() != c {
		return false
	}
	d.at++
	return true
}

func (d *reader) startsValue() bool  { return strings.IndexByte(`{["-0123456789tfn`, d.next()) >= 0 }
func (d *reader) startsNumber() bool { return strings.IndexByte(`-0123456789`, d.next()) >= 0 }

func (d *reader) word() string {
	rest := d.text[d.at:]
	if i := strings.IndexAny(rest, " \t\n\r,:]}"); i >= 0 {
		return rest[:max(i, 1)]
	}
	return rest
}

const halfDetail = `a string contains an unpaired surrogate escape (\ud800 to \udfff); send the whole character`

func (d *reader) failSyntax(want string) {
	switch {
	case d.half:
		d.fail(halfDetail)
	case d.end() && strings.TrimSpace(d.text) == "":
		d.fail(`the body is empty; send JSON such as {"attributes": {"header:x-api-key": "k1"}}`)
	case d.end():
		d.fail("the body ends early; send all of the JSON object")
	default:
		d.fail("this is not JSON: " + clip(strconv.Quote(d.word())) + " at byte " + strconv.Itoa(d.at) + ", expected " + want)
	}
}

// fail records a problem at the current position. The first problem is kept.
func (d *reader) fail(detail string) {
	if d.problem != nil {
		return
	}
	d.problem = api.NewProblem(http.StatusBadRequest, detail)
	for _, name := range d.path {
		d.problem.Pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(name)) // RFC 6901 §3
	}
}

func clip(s string) string {
	const longest = 80
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "…"
}
