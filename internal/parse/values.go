// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/spell"
)

const maxNumberBytes = 100

// Items returns the elements of the list n: at most most, and at least one if some is set. It returns false if n is
// not a list of such a length.
func (r *Report) Items(n *Node, what string, some bool, most int) ([]*Node, bool) {
	switch {
	case n.Kind != KindList:
		hint := ""
		if n.Kind == KindText || n.Kind == KindNumber {
			hint = fmt.Sprintf("write [%s]", FormatValue(n))
		}
		r.Add(n, what+" must be a list", hint)
	case some && len(n.List) == 0:
		r.Add(n, what+" must not be empty", "")
	case len(n.List) > most:
		r.Add(n, fmt.Sprintf("%s must have at most %d entries", what, most), "")
	default:
		return n.List, true
	}
	return nil, false
}

// OneOrMore returns the elements of n like [Report.Items]. It treats any other value as a list of one.
func (r *Report) OneOrMore(n *Node, what string, most int) ([]*Node, bool) {
	if n.Kind != KindList {
		return []*Node{n}, true
	}
	return r.Items(n, what, true, most)
}

// String returns the string n of at most most bytes.
func (r *Report) String(n *Node, what string, most int) (string, bool) {
	switch {
	case n.Kind != KindText:
		r.Add(n, what+" must be a string", "")
	case len(n.Text) > most:
		r.Add(n, fmt.Sprintf("%s must have at most %d bytes, not %d", what, most, len(n.Text)), "")
	default:
		return n.Text, true
	}
	return "", false
}

// Name returns the string n if it is a valid name: not empty and without surrounding spaces. Only the characters of a
// structured-field string are valid (RFC 9651, section 3.3.3).
func (r *Report) Name(n *Node, what string, most int) (string, bool) {
	s, ok := r.String(n, what, most)
	switch {
	case !ok:
		return "", false
	case s == "":
		r.Add(n, what+" must not be empty", "")
	case strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) >= 0:
		r.Add(n, what+" must be printable ASCII, because it is sent in a header", "")
	case strings.TrimSpace(s) != s:
		r.Add(n, what+" must not begin or end with a space", "")
	default:
		return s, true
	}
	return "", false
}

// Choice returns the index of the string n in words, or -1 after an error. Words in later are reserved but not
// supported; their values complete the message.
func (r *Report) Choice(n *Node, what string, words []string, later map[string]string) int {
	known := what + " must be " + Enumerate(words, "or")
	if n.Kind != KindText {
		r.Add(n, known, "")
		return -1
	}
	i := slices.Index(words, n.Text)
	if why, ok := later[n.Text]; ok && i < 0 {
		r.Add(n, what+" is not supported yet"+why, "use "+words[0])
	} else if i < 0 {
		r.Add(n, known, Nearest(n.Text, words))
	}
	return i
}

// Nearest returns a hint at the word that resembles text, or "".
func Nearest(text string, words []string) string {
	if near := spell.Nearest(text, words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// Enumerate joins words: "a, b or c".
func Enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

// Bool returns the boolean n.
func (r *Report) Bool(n *Node, what string) (value, ok bool) {
	if n.Kind != KindBool {
		r.Add(n, what+" must be true or false", "")
	}
	return n.Text == "true", n.Kind == KindBool
}

// Whole returns the whole number n between least and most.
func (r *Report) Whole(n *Node, what string, least, most int) (int, bool) {
	i, err := strconv.Atoi(n.Text)
	if n.Kind != KindNumber || err != nil || i < least || i > most {
		r.Add(n, fmt.Sprintf("%s must be a whole number from %d to %d", what, least, most), "")
		return 0, false
	}
	return i, true
}

// Instant returns the instant n, or the zero time after an error or for a nil node.
func (r *Report) Instant(n *Node, what string) time.Time {
	if n == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, n.Text)
	if n.Kind != KindText || err != nil {
		r.Add(n, what+" must be a timestamp", "as in 2026-01-02T15:04:05Z")
		return time.Time{}
	}
	return t
}

// Duration returns the duration n in whole microseconds. example is for the hint.
func (r *Report) Duration(n *Node, what, example string) (time.Duration, bool) {
	hint := fmt.Sprintf("as in %q", example)
	if n.Kind == KindNumber {
		unit := "s"
		if strings.HasSuffix(example, "ms") {
			unit = "ms"
		}
		hint = fmt.Sprintf("add a unit, as in %q", n.Text+unit)
	}
	if n.Kind != KindText || len(n.Text) > maxNumberBytes {
		r.Add(n, what+" must be a duration", hint)
		return 0, false
	}
	d, err := bucket.ParseDuration(n.Text)
	switch {
	case err != nil:
		_, hint, _ = strings.Cut(Reason(err), strconv.Quote(n.Text)+": ")
		r.Add(n, what+" must be a duration", hint)
	case d%time.Microsecond != 0:
		r.Add(n, what+" must be whole microseconds", "")
	default:
		return d, true
	}
	return 0, false
}

// Tokens returns the amount n. It must be above 0.
func (r *Report) Tokens(n *Node, what string) (bucket.Tokens, bool) {
	if !r.Number(n, what) {
		return 0, false
	}
	t, ok := r.Amount(n, what)
	if ok && t == 0 {
		r.Add(n, what+" must be above 0", "")
		return 0, false
	}
	return t, ok
}

// Amount returns the amount n. It must not be negative.
func (r *Report) Amount(n *Node, what string) (bucket.Tokens, bool) {
	switch {
	case n.Numeric() && n.Text[0] == '-':
		r.Add(n, what+" must not be below 0", "")
		return 0, false
	case !r.Number(n, what):
		return 0, false
	}
	t, err := bucket.ParseTokens(n.Text)
	if err != nil {
		r.Add(n, what+": "+Reason(err), "")
	}
	return t, err == nil
}

// Number reports whether n has the form of a number that is not negative. Strings with numbers are valid.
func (r *Report) Number(n *Node, what string) bool {
	switch {
	case !n.Numeric():
		r.Add(n, what+" must be a number", "")
	case n.Text[0] == '-':
		r.Add(n, what+" must be above 0", "")
	default:
		return true
	}
	return false
}

// Numeric reports whether n is a number, or a string with the characters of numbers.
func (n *Node) Numeric() bool { return (n.Kind == KindNumber || n.Kind == KindText) && Numeric(n.Text) }

// Numeric reports whether s consists of the characters of numbers.
func Numeric(s string) bool {
	return s != "" && len(s) <= maxNumberBytes && strings.Trim(s, "0123456789.eE+-") == ""
}

// Reason returns the text of an error of package bucket without the sentinel's text.
func Reason(err error) string {
	s := err.Error()
	for _, sentinel := range []error{bucket.ErrLimit, bucket.ErrRate, bucket.ErrTokens, bucket.ErrDuration} {
		s = strings.TrimPrefix(s, sentinel.Error()+": ")
	}
	return s
}
