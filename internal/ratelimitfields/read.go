// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Announced limit is what a server says of one limit.
type Announced struct {
	Name      string        // "" where the dialect has no names
	Remaining int64         // what may be used now
	Reset     time.Duration // within which no more than Remaining may be used; 0 where not said
	Quota     int64         // the most there can be; 0 where not said
	Window    time.Duration // in which Quota comes back; 0 where not said
}

const (
	// MaxAnnounced bounds the limits that are read of one answer. Others are
	// ignored.
	MaxAnnounced = 8

	// maxAnnouncedBytes bounds the fields that are read; longer ones are ignored.
	maxAnnouncedBytes = 4096

	// longestReset bounds what is believed of a Reset, a Window or a Retry-After:
	// later ones are taken as this.
	longestReset = 31 * 24 * time.Hour

	// firstUnix is the smallest number that is taken as a Unix time (of 1998), not
	// as a number of seconds.
	firstUnix = 900_000_000
)

// Read returns the limits that an answer announces, in the first of the dialects
// it speaks: the draft's from its eighth version on (names and parameters), its
// seventh (limit=, remaining=, reset=), RateLimit-Limit, -Remaining and -Reset,
// and the same with X-RateLimit- or X-Rate-Limit-, whose Reset may be a Unix
// time. What is malformed or negative is ignored, and what is too large is
// bounded. now is the client's time: where the answer has a Date, that is the
// server's.
func Read(h http.Header, now time.Time) []Announced {
	if text := joined(h, fieldNames[draftLimit]); text != "" {
		if items, ok := parseList(text); ok {
			if found := readDraft(items, joined(h, fieldNames[draftPolicy])); len(found) > 0 {
				return found
			}
			if found, ok := readDictionary(items); ok {
				return []Announced{withPolicy(found, h)}
			}
		}
	}
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-", "X-Rate-Limit-"} {
		if found, ok := readTrio(h, prefix, now); ok {
			return []Announced{withPolicy(found, h)}
		}
	}
	return nil
}

// RetryAfter returns how long an answer asks to wait, in seconds or as a date,
// and whether it does.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := joined(h, fieldNames[retryAfter])
	if n, ok := parseSeconds(text); ok {
		return bounded(n), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return until(at, h, now), true
}

// joined returns the field called name as one line; "" where there is none.
func joined(h http.Header, name string) string {
	lines := h.Values(name)
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	switch {
	case size > maxAnnouncedBytes || len(lines) == 0:
		return ""
	case len(lines) == 1:
		return lines[0]
	}
	return strings.Join(lines, ",")
}

// readDraft reads the items of a RateLimit field.
func readDraft(items []listItem, policyText string) []Announced {
	policies, _ := parseList(policyText)
	var found []Announced
	for i := range items {
		item := &items[i]
		remaining, ok := item.int("r", "a") // the draft is about to rename them
		if !ok || len(found) == MaxAnnounced {
			continue
		}
		a := Announced{Name: item.value, Remaining: remaining}
		if t, ok := item.int("t", "w"); ok {
			a.Reset = bounded(t)
		}
		if at := slices.IndexFunc(policies, func(p listItem) bool { return p.value == item.value }); at >= 0 {
			a.Quota, _ = policies[at].int("q")
			if w, ok := policies[at].int("w"); ok {
				a.Window = bounded(w)
			}
		}
		found = append(found, a)
	}
	return found
}

// readDictionary reads limit=100, remaining=50, reset=5.
func readDictionary(items []listItem) (a Announced, ok bool) {
	for _, item := range items {
		name, text, _ := strings.Cut(item.value, "=")
		n, valid := parseSeconds(text)
		if !valid {
			continue
		}
		switch name {
		case "limit":
			a.Quota = n
		case "remaining":
			a.Remaining, ok = n, true
		case "reset":
			a.Reset = bounded(n)
		}
	}
	return a, ok
}

// readTrio reads the three fields that begin with prefix.
func readTrio(h http.Header, prefix string, now time.Time) (a Announced, ok bool) {
	if a.Remaining, ok = parseSeconds(joined(h, prefix+"Remaining")); !ok {
		return a, false
	}
	limit, _, _ := strings.Cut(joined(h, prefix+"Limit"), ",") // early drafts go on with policies
	limit, _, _ = strings.Cut(limit, ";")
	a.Quota, _ = parseSeconds(limit)
	if reset, valid := parseSeconds(joined(h, prefix+"Reset")); valid {
		a.Reset = bounded(reset)
		if reset >= firstUnix {
			a.Reset = until(time.Unix(reset, 0), h, now)
		}
	}
	return a, true
}

// withPolicy adds the window that goes with a's quota, from the policies of the
// early drafts: 10;w=1, 50;w=60.
func withPolicy(a Announced, h http.Header) Announced {
	for _, name := range []string{fieldNames[draftPolicy], fieldNames[legacyLimit], fieldNames[xLimit]} {
		items, _ := parseList(joined(h, name))
		for i := range items {
			w, ok := items[i].int("w")
			if n, valid := parseSeconds(items[i].value); ok && valid && n == a.Quota {
				a.Window = bounded(w)
				return a
			}
		}
	}
	return a
}

// until is how long it is to an instant of the server's, by its own clock where it
// says what that shows.
func until(at time.Time, h http.Header, now time.Time) time.Duration {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), longestReset)
}

// parseSeconds reads an integer that is not negative. Fractions are rounded up;
// what is too large is [maxInteger].
func parseSeconds(text string) (int64, bool) {
	text, fraction, _ := strings.Cut(strings.Trim(text, " \t"), ".")
	if text == "" || len(text) > 64 || strings.Trim(text, "0123456789") != "" || strings.Trim(fraction, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > maxInteger {
		return maxInteger, true
	}
	if strings.Trim(fraction, "0") != "" {
		n++
	}
	return n, true
}

// bounded returns a number of seconds as a duration that can be believed.
func bounded(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(longestReset/time.Second))) * time.Second
}
