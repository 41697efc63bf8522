// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
)

// FuzzAddress_AsNaive compares the search from the right with a parser of the whole header from the left, with
// the grammars as regular expressions. The standards define the header that way. The two are compared only for
// valid headers, because clients can send anything.
func FuzzAddress_AsNaive(f *testing.F) {
	for _, seed := range []string{
		"203.0.113.9", "1.1.1.1, 203.0.113.9, 10.0.0.2", "1.1.1.1,10.0.0.1\n10.0.0.2:80", "[2001:db8::9]:4711, ::ffff:a00:2",
		"unknown, 10.0.0.9", "_hidden, 203.0.113.9", "fe80::1%eth0", "2001:db8:aaaa::1, 10.1.1.1", "1.1.1.1:_x", "::ffff:c000:201",
		`for=203.0.113.9`, `for="[2001:db8::9]:4711";proto=https, for=10.0.0.2`, `by=_me;FOR="203.0.113.9:_p";host="a,b;c"`,
		`for=unknown, For="_hidden"`, `for="203.0.\113.9", for=10.0.0.1` + "\n" + `for=10.0.0.3`, `host="\"\\";for=203.0.113.9`,
	} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(1))
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, sent string, hops uint8) {
		lines := strings.Split(sent, "\n")
		for name, read := range map[string]func(string) ([]string, bool){"X-Forwarded-For": readList, "Forwarded": readForwarded} {
			var nodes []string
			kept := true
			for _, line := range lines {
				more, ok := read(line)
				kept = kept && ok
				nodes = append(nodes, more...)
			}
			if !kept {
				continue
			}
			trust := httpfacts.Trust{Hops: int(hops % 5), Header: name}
			if trust.Hops == 0 {
				trust.Proxies = proxies
			}
			got := address(t, trust, "10.0.0.1:80", http.Header{name: lines})
			if want := naiveClient(nodes, trust); got != want {
				t.Errorf("%s %q under %d hops: got %q, want %q", name, lines, trust.Hops, got, want)
			}
		}
	})
}

// naiveClient goes left from the connection, which is 10.0.0.1's, for as long as it
// may.
func naiveClient(nodes []string, trust httpfacts.Trust) string {
	client := netip.MustParseAddr("10.0.0.1")
	for passed, node := range slices.Backward(nodes) {
		addr := naiveNode(node)
		passed = len(nodes) - passed
		if !addr.IsValid() || passed > httpfacts.MaxHops {
			break
		}
		client = addr
		trusted := slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
		if trust.Hops == passed || trust.Hops == 0 && !trusted {
			break
		}
	}
	return client.String()
}

// nodePattern is RFC 7239, 6, with IPv6 also as X-Forwarded-For has it, without brackets,
// and with zones.
var nodePattern = regexp.MustCompile(`^(?:unknown|_[\w.-]+|([0-9.]+)|\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)(?:%\w+)?\]|(` +
	`[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)(?:%\w+)?)(?::(?:[0-9]{1,5}|_[\w.-]+))?$`)

// naiveNode returns the address of a node, without zone and as IPv4 where it is one.
func naiveNode(node string) netip.Addr {
	m := nodePattern.FindStringSubmatch(node)
	if m == nil {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(m[1] + m[2] + m[3])
	if err != nil || len(node) > 128 {
		return netip.Addr{}
	}
	return addr.Unmap()
}

// readList reads a line of X-Forwarded-For, and reports whether it is a list of what
// can be nodes.
func readList(line string) ([]string, bool) {
	var nodes []string
	for node := range strings.SplitSeq(line, ",") {
		node = strings.Trim(node, " \t")
		if !nodePattern.MatchString(node) {
			return nil, false
		}
		nodes = append(nodes, node)
	}
	return nodes, true
}

const (
	tokenRE  = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
	quotedRE = `"(?:[^"\\]|\\.)*"`
	pairRE   = tokenRE + `=(?:` + tokenRE + `|` + quotedRE + `)`
)

var (
	forwardedPattern = regexp.MustCompile(`(?s)^` + pairRE + `(?:;` + pairRE + `)*(?:[ \t]*,[ \t]*` + pairRE + `(?:;` + pairRE + `)*)*$`) // RFC 7239, 4
	elementPattern   = regexp.MustCompile(`(?s)` + pairRE + `(?:;` + pairRE + `)*`)
	pairPattern      = regexp.MustCompile(`(?s)(` + tokenRE + `)=(` + tokenRE + `|` + quotedRE + `)`)
	escapePattern    = regexp.MustCompile(`(?s)\\(.)`)
)

// readForwarded reads a line of Forwarded, and reports whether it keeps to RFC 7239.
// An element without for, or with two, is a node that has no address.
func readForwarded(line string) ([]string, bool) {
	if !forwardedPattern.MatchString(line) {
		return nil, false
	}
	var nodes []string
	for _, element := range elementPattern.FindAllString(line, -1) {
		node, times := "", 0
		for _, m := range pairPattern.FindAllStringSubmatch(element, -1) {
			if !strings.EqualFold(m[1], "for") {
				continue
			}
			times++
			if node = m[2]; strings.HasPrefix(node, `"`) {
				node = escapePattern.ReplaceAllString(node[1:len(node)-1], "$1")
			}
		}
		if times != 1 {
			node = "unknown"
		} else if !nodePattern.MatchString(node) {
			return nil, false
		}
		nodes = append(nodes, node)
	}
	return nodes, true
}
