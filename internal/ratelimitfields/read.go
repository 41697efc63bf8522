// SPDX-License-Identifier: Apache-2.0

package ratelimitfields

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Announced is a limit in the header fields of a server.
type Announced struct {
	Name      string        // "" if the dialect has no names
	Remaining int64         // remaining quota
	Reset     time.Duration // time for which Remaining must last; 0 if unknown
	Quota     int64         // total quota; 0 if unknown
	Window    time.Duration // time in which Quota is restored; 0 if unknown
}

const (
	// MaxAnnounced bounds the limits that are read from one response. Others are ignored.
	MaxAnnounced = 8

	// maxAnnouncedBytes bounds the length of fields that are read. Longer ones are ignored.
	maxAnnouncedBytes = 4096

	// maxReset caps Reset, Window and Retry-After.
	maxReset = 31 * 24 * time.Hour

	// firstUnix is the smallest number that is read as a Unix time (in 1998) instead of a number of seconds.
	firstUnix = 900_000_000
)

// Read returns the limits that a response announces, in the first dialect that it uses. The dialects are the
// draft from version 8 on (names and parameters), draft 7 (limit=, remaining=, reset=), and RateLimit-Limit,
// -Remaining and -Reset. With the prefixes X-RateLimit- and X-Rate-Limit-, Reset may be a Unix time. Malformed
// and negative values are ignored, and large values are capped. now is the client's time; the Date field, if
// present, is the server's.
func Read(h http.Header, now time.Time) []Announced {
	if text := joinLines(h, fieldNames[draftLimit]); text != "" {
		if items, ok := parseList(text); ok {
			if found := readDraft(items, joinLines(h, fieldNames[draftPolicy])); len(found) > 0 {
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

// RetryAfter returns the wait in Retry-After, in seconds or as a date, and whether there is one.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := joinLines(h, fieldNames[retryAfter])
	if n, ok := parseSeconds(text); ok {
		return capSeconds(n), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return untilServerTime(at, h, now), true
}

func joinLines(h http.Header, name string) string {
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

func readDraft(items []listItem, policyText string) []Announced {
	policies, _ := parseList(policyText)
	var found []Announced
	for i := range items {
		item := &items[i]
		remaining, ok := item.int("r", "a") // the next draft renames them
		if !ok || len(found) == MaxAnnounced {
			continue
		}
		a := Announced{Name: item.value, Remaining: remaining}
		if t, ok := item.int("t", "w"); ok {
			a.Reset = capSeconds(t)
		}
		if at := slices.IndexFunc(policies, func(p listItem) bool { return p.value == item.value }); at >= 0 {
			a.Quota, _ = policies[at].int("q")
			if w, ok := policies[at].int("w"); ok {
				a.Window = capSeconds(w)
			}
		}
		found = append(found, a)
	}
	return found
}

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
			a.Reset = capSeconds(n)
		}
	}
	return a, ok
}

func readTrio(h http.Header, prefix string, now time.Time) (a Announced, ok bool) {
	if a.Remaining, ok = parseSeconds(joinLines(h, prefix+"Remaining")); !ok {
		return a, false
	}
	limit, _, _ := strings.Cut(joinLines(h, prefix+"Limit"), ",") // early drafts append policies
	limit, _, _ = strings.Cut(limit, ";")
	a.Quota, _ = parseSeconds(limit)
	if reset, valid := parseSeconds(joinLines(h, prefix+"Reset")); valid {
		a.Reset = capSeconds(reset)
		if reset >= firstUnix {
			a.Reset = untilServerTime(time.Unix(reset, 0), h, now)
		}
	}
	return a, true
}

// withPolicy adds the window of a's quota from the policies of early drafts: 10;w=1, 50;w=60.
func withPolicy(a Announced, h http.Header) Announced {
	for _, name := range []string{fieldNames[draftPolicy], fieldNames[legacyLimit], fieldNames[xLimit]} {
		items, _ := parseList(joinLines(h, name))
		for i := range items {
			w, ok := items[i].int("w")
			if n, valid := parseSeconds(items[i].value); ok && valid && n == a.Quota {
				a.Window = capSeconds(w)
				return a
			}
		}
	}
	return a
}

// untilServerTime returns the time until at by the server's clock, if the response has a Date.
func untilServerTime(at time.Time, h http.Header, now time.Time) time.Duration {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxReset)
}

// parseSeconds parses a non-negative integer. It rounds fractions up and returns [maxInteger] for larger numbers.
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

// capSeconds converts seconds to a duration of at most maxReset.
func capSeconds(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(maxReset/time.Second))) * time.Second
}
