// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/api"
)

// Bounds of the rows on a page of violations.
const (
	defaultViolations = 50

	maxViolations = 200
)

const violationRange = 24 * time.Hour

// maxFilterBytes bounds each filter value. No stored value is longer.
const maxFilterBytes = 512

// The role read sees networks of these sizes instead of addresses, and can search for them.
const (
	shownBits4 = 24
	shownBits6 = 48
)

// A ViolationFilter selects rows of the record of denials. Empty members select everything.
type ViolationFilter struct {
	From, To     time.Time // always set; To is exclusive
	Rule, Reason string
	Key, User    string
	Network      netip.Prefix
	Endpoint     string // prefix, with the method unless it starts with a slash
	Mode         string // enforced, shadow, or empty for both

	// SeeKeys reports whether the caller may see keys, users and addresses. If false, the result must mask them,
	// and unmasked values must not be searchable.
	SeeKeys bool

	After ViolationPlace // position of the previous row; zero starts with the newest
	Limit int
}

// A ViolationPlace is the position of a row in the list.
type ViolationPlace struct {
	At time.Time
	ID int64
}

var violationFields = map[string]func(f *ViolationFilter, value string) error{
	"from":     func(f *ViolationFilter, v string) (err error) { f.From, err = readTime(v); return err },
	"to":       func(f *ViolationFilter, v string) (err error) { f.To, err = readTime(v); return err },
	"rule":     func(f *ViolationFilter, v string) error { f.Rule = v; return nil },
	"reason":   func(f *ViolationFilter, v string) error { f.Reason = v; return nil },
	"key":      func(f *ViolationFilter, v string) error { f.Key = v; return nil },
	"user":     func(f *ViolationFilter, v string) error { f.User = v; return nil },
	"endpoint": (*ViolationFilter).readEndpoint,
	"address":  func(f *ViolationFilter, v string) (err error) { f.Network, err = readNetwork(v); return err },
	"mode":     (*ViolationFilter).readMode,
	"cursor":   func(f *ViolationFilter, v string) (err error) { f.After, err = readPlace(v); return err },
	"limit":    (*ViolationFilter).readLimit,
}

// readFilter parses a caller's query. It rejects unknown parameters, because they would select other rows.
func readFilter(query url.Values, seesKeys bool, now time.Time) (f ViolationFilter, p *api.Problem) {
	f = ViolationFilter{SeeKeys: seesKeys, Limit: defaultViolations}
	for name, values := range query {
		read, ok := violationFields[name]
		switch {
		case !ok:
			return f, parameterProblem(name, "unknown filter; use one of "+strings.Join(slices.Sorted(maps.Keys(violationFields)), ", "))
		case len(values) > 1:
			return f, parameterProblem(name, "must not occur more than once")
		case len(values[0]) > maxFilterBytes:
			return f, parameterProblem(name, fmt.Sprintf("must not be longer than %d bytes", maxFilterBytes))
		case values[0] == "":
			continue
		}
		if err := read(&f, values[0]); err != nil {
			return f, parameterProblem(name, err.Error())
		}
	}
	if f.To.IsZero() {
		f.To = now.UTC()
	}
	if f.From.IsZero() {
		f.From = f.To.Add(-violationRange)
	}
	if !f.From.Before(f.To) {
		return f, parameterProblem("to", "must be later than from")
	}
	if !f.SeeKeys {
		return f, f.checkVisible()
	}
	return f, nil
}

func parameterProblem(name, detail string) *api.Problem {
	return api.NewProblem(http.StatusBadRequest, name+": "+detail)
}

func readTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.IsZero() {
		return t, fmt.Errorf("%.40q is not a time; write it as 2026-11-21T08:00:00Z", text)
	}
	return t.UTC(), nil
}

func readNetwork(text string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%.60q is neither an address nor a network; write 192.0.2.7 or 192.0.2.0/24", text)
	}
	a = a.Unmap().WithZone("")
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// readEndpoint accepts an endpoint in the shortened form that the role read sees.
func (f *ViolationFilter) readEndpoint(text string) error {
	f.Endpoint = strings.TrimSuffix(text, "…")
	return nil
}

func (f *ViolationFilter) readMode(text string) error {
	if text != "enforced" && text != "shadow" {
		return fmt.Errorf("%.40q is neither enforced nor shadow", text)
	}
	f.Mode = text
	return nil
}

func (f *ViolationFilter) readLimit(text string) (err error) {
	if f.Limit, err = strconv.Atoi(text); err != nil || f.Limit < 1 || f.Limit > maxViolations {
		return fmt.Errorf("must be between 1 and %d", maxViolations)
	}
	return nil
}

// String returns the place as a cursor.
func (p ViolationPlace) String() string { return fmt.Sprintf("%d.%d", p.At.UnixMicro(), p.ID) }

func readPlace(text string) (p ViolationPlace, err error) {
	at, id, ok := strings.Cut(text, ".")
	micros, err1 := strconv.ParseInt(at, 10, 64)
	number, err2 := strconv.ParseInt(id, 10, 64)
	p = ViolationPlace{time.UnixMicro(micros).UTC(), number}
	if !ok || err1 != nil || err2 != nil || p.At.Year() < 1 || p.At.Year() > 9999 {
		return p, fmt.Errorf("%.60q is not the next of an earlier response", text)
	}
	return p, nil
}

// checkVisible rejects a search for values that the role read may not see, because the result would reveal them.
func (f *ViolationFilter) checkVisible() *api.Problem {
	const instead = "; sign in with a token with the role operate"
	for _, by := range []struct{ name, value string }{{"key", f.Key}, {"user", f.User}} {
		if by.value != "" && !isHash(by.value) {
			return forbiddenParameter(by.name, "searching by name requires the role operate: use the hash ~… from the table"+instead)
		}
	}
	if f.Network.IsValid() {
		bits := shownBits6
		if f.Network.Addr().Is4() {
			bits = shownBits4
		}
		if f.Network.Bits() > bits {
			shown, _ := f.Network.Addr().Prefix(bits)
			return forbiddenParameter("address", "searching for one address requires the role operate: use its network, "+shown.String()+instead)
		}
	}
	if maskedEndpoint(f.Endpoint) != f.Endpoint {
		return forbiddenParameter("endpoint", "searching for a longer path requires the role operate: use only its first segment"+instead)
	}
	return nil
}

func forbiddenParameter(name, detail string) *api.Problem {
	return api.NewProblem(http.StatusForbidden, name+": "+detail)
}

func isHash(s string) bool {
	const letters = 22
	return len(s) == 1+letters && s[0] == '~' && !strings.ContainsFunc(s[1:], func(r rune) bool {
		return (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') && r != '-' && r != '_'
	})
}

// maskedEndpoint returns the method and the first path segment. The rest may identify a person.
func maskedEndpoint(s string) string {
	slash := strings.IndexByte(s, '/')
	if slash < 0 {
		return s
	}
	if next := strings.IndexByte(s[slash+1:], '/'); next >= 0 && slash+1+next+1 < len(s) {
		return s[:slash+1+next+1] + "…"
	}
	return s
}
