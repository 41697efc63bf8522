// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

func (o *outcome) judgeLast(found []Failure) []Failure {
	e, d := &o.step.Expect, &o.last.d
	fail := func(field, want, got string) {
		found = append(found, o.newFailure(&o.last, e.Place(field), want, got))
	}
	if e.RetryAfter != nil {
		switch {
		case d.Allowed:
			fail("retry_after", "retry after "+formatDuration(*e.RetryAfter), describe(d))
		case d.RetryAfter != *e.RetryAfter:
			fail("retry_after", "retry after "+formatDuration(*e.RetryAfter), formatDuration(d.RetryAfter))
		}
	}
	if e.Wait != nil {
		switch {
		case !d.Allowed:
			fail("wait", "a wait of "+formatDuration(*e.Wait), describe(d))
		case d.Wait != *e.Wait:
			fail("wait", "a wait of "+formatDuration(*e.Wait), formatDuration(d.Wait))
		}
	}
	for _, a := range e.Remaining {
		s := findStatus(d, a.Limit)
		switch {
		case s == nil:
			fail("remaining", fmt.Sprintf("%v remaining%s", a.Tokens, ofLimit(a.Limit)), describeNoStatus(a.Limit))
		case !remains(s.Room(), a.Tokens):
			fail("remaining", fmt.Sprintf("%v remaining%s", a.Tokens, ofLimit(a.Limit)), formatRemaining(s.Room(), a.Tokens))
		}
	}
	for _, a := range e.Cost {
		s := findStatus(d, a.Limit)
		switch {
		case s == nil:
			fail("cost", fmt.Sprintf("a cost of %v%s", a.Tokens, ofLimit(a.Limit)), describeNoStatus(a.Limit))
		case s.Cost != a.Tokens:
			fail("cost", fmt.Sprintf("a cost of %v%s", a.Tokens, ofLimit(a.Limit)), s.Cost.String())
		}
	}
	if e.Stage != nil && !inStage(d, *e.Stage) {
		fail("stage", "stage "+orNone(*e.Stage), listNames(activeShares(d)))
	}
	return found
}

// remains compares the remaining tokens of a limit with the expectation. Unless want has a
// fraction, it compares whole tokens, as clients see them.
func remains(got, want bucket.Tokens) bool {
	if want%bucket.Token != 0 {
		return got == want
	}
	return got.Whole() == want.Whole()
}

func formatRemaining(got, want bucket.Tokens) string {
	if want%bucket.Token != 0 {
		return got.String()
	}
	return fmt.Sprint(got.Whole())
}

// findStatus returns the status of the named limit, or of the limit of a named rule with the least left. For an
// empty name, it returns the status of the deciding limit. It returns nil if there is none.
func findStatus(d *mete.Decision, name string) (found *mete.Status) {
	if name == "" {
		return d.Decider()
	}
	for i := range d.Limits() {
		s := &d.Limits()[i]
		if s.Limit.Name == name {
			return s
		}
		if s.Rule.Name == name && (found == nil || s.Room() < found.Room()) {
			found = s
		}
	}
	return found
}

func describeNoStatus(limit string) string {
	if limit == "" {
		return "none, because no limit decides"
	}
	return "none, because it does not apply"
}

func ofLimit(limit string) string {
	if limit == "" {
		return ""
	}
	return " of " + limit
}

func formatDuration(d time.Duration) string {
	if d == bucket.Never {
		return "never"
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
