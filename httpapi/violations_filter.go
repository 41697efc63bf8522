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

// How many rows a page of violations has.
const (
	defaultViolations = 50

	// maxViolations is the most. To ask for more is an error.
	maxViolations = 200
)

// violationRange is the time that an answer covers if the filter has no from.
const violationRange = 24 * time.Hour

// maxFilterBytes bounds each value of a filter: nothing that is stored is longer.
const maxFilterBytes = 512

// Networks that the role read sees in place of addresses, and can look for: /24, or /48.
const (
	shownBits4 = 24
	shownBits6 = 48
)

// A ViolationFilter selects rows of the record of denials. An empty member is no
// restriction.
type ViolationFilter struct {
	From, To     time.Time // both are always set; To is not included
	Rule, Reason string
	Key, User    string
	Network      netip.Prefix
	Endpoint     string // the beginning, with the method; without it if it begins with a slash
	Mode         string // enforced, shadow, or empty for both

	// SeeKeys says that the caller may see keys, users and addresses. If not, they must be
	// masked, and the unmasked ones must not be found.
	SeeKeys bool

	After ViolationPlace // the place of the last row before; zero begins with the newest
	Limit int
}

// A ViolationPlace is the place of a row in a list.
type ViolationPlace struct {
	At time.Time
	ID int64
}

// violationFields read the parameters of a filter, by their names.
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

// readFilter reads the query of a caller. An unknown parameter is an error: without a
// restriction, the answer would be another one.
func readFilter(query url.Values, seesKeys bool, now time.Time) (f ViolationFilter, p *api.Problem) {
	f = ViolationFilter{SeeKeys: seesKeys, Limit: defaultViolations}
	for name, values := range query {
		read, ok := violationFields[name]
		switch {
		case !ok:
			return f, blame(name, "there is no such filter; there are "+strings.Join(slices.Sorted(maps.Keys(violationFields)), ", "))
		case len(values) > 1:
			return f, blame(name, "it is given more than once")
		case len(values[0]) > maxFilterBytes:
			return f, blame(name, fmt.Sprintf("it is longer than %d bytes", maxFilterBytes))
		case values[0] == "":
			continue
		}
		if err := read(&f, values[0]); err != nil {
			return f, blame(name, err.Error())
		}
	}
	if f.To.IsZero() {
		f.To = now.UTC()
	}
	if f.From.IsZero() {
		f.From = f.To.Add(-violationRange)
	}
	if !f.From.Before(f.To) {
		return f, blame("to", "it must be later than from")
	}
	if !f.SeeKeys {
		return f, f.withinSight()
	}
	return f, nil
}

// blame returns a problem with one parameter.
func blame(name, detail string) *api.Problem {
	return api.NewProblem(http.StatusBadRequest, name+": "+detail)
}

func readTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.IsZero() {
		return t, fmt.Errorf("%.40q is no time; write 2026-11-21T08:00:00Z", text)
	}
	return t.UTC(), nil
}

// readNetwork reads an address, or a network of addresses.
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

// readEndpoint takes an endpoint as it is shown to those who may not see all of it.
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
		return fmt.Errorf("it must be between 1 and %d", maxViolations)
	}
	return nil
}

// String is the place as a cursor.
func (p ViolationPlace) String() string { return fmt.Sprintf("%d.%d", p.At.UnixMicro(), p.ID) }

// readPlace reads a cursor.
func readPlace(text string) (p ViolationPlace, err error) {
	at, id, ok := strings.Cut(text, ".")
	micros, err1 := strconv.ParseInt(at, 10, 64)
	number, err2 := strconv.ParseInt(id, 10, 64)
	p = ViolationPlace{time.UnixMicro(micros).UTC(), number}
	if !ok || err1 != nil || err2 != nil || p.At.Year() < 1 || p.At.Year() > 9999 {
		return p, fmt.Errorf("%.60q is not the next of an earlier answer", text)
	}
	return p, nil
}

// withinSight rejects a search for something that the role read does not see: a result would
// reveal it.
func (f *ViolationFilter) withinSight() *api.Problem {
	const instead = "; sign in with a token of the role operate"
	for _, by := range []struct{ name, value string }{{"key", f.Key}, {"user", f.User}} {
		if by.value != "" && !isHash(by.value) {
			return forbid(by.name, "to look for one by name takes the role operate: write ~… as the table shows it"+instead)
		}
	}
	if f.Network.IsValid() {
		bits := shownBits6
		if f.Network.Addr().Is4() {
			bits = shownBits4
		}
		if f.Network.Bits() > bits {
			shown, _ := f.Network.Addr().Prefix(bits)
			return forbid("address", "to look for one address takes the role operate: write its network, "+shown.String()+instead)
		}
	}
	if maskedEndpoint(f.Endpoint) != f.Endpoint {
		return forbid("endpoint", "to look for a longer path takes the role operate: write no more than its first part"+instead)
	}
	return nil
}

// forbid returns the problem of a parameter that takes a higher role.
func forbid(name, detail string) *api.Problem {
	return api.NewProblem(http.StatusForbidden, name+": "+detail)
}

// isHash reports whether a key or a user is written as it is stored, or masked: a
// mark and 128 bits in base64.
func isHash(s string) bool {
	const letters = 22
	return len(s) == 1+letters && s[0] == '~' && !strings.ContainsFunc(s[1:], func(r rune) bool {
		return (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') && r != '-' && r != '_'
	})
}

// maskedEndpoint leaves the method and the first part of the path: the rest may name
// somebody.
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
