// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
)

// proxies are the proxies of a typical deployment.
var proxies = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("2001:db8:aaaa::/48"),
}

// address returns the client's address under trust, "" if it is missing.
func address(t testing.TB, trust httpfacts.Trust, peer string, header http.Header) string {
	t.Helper()
	source, err := httpfacts.New(httpfacts.Config{Trust: trust})
	if err != nil {
		t.Fatalf("New(%+v): %v", trust, err)
	}
	facts := source.Facts(&http.Request{RemoteAddr: peer, Header: header})
	defer facts.Release()
	got, ok := facts.Address()
	if ok != (got != "") {
		t.Fatalf("Address() = %q, %v", got, ok)
	}
	return got
}

func TestAddress_OfTheConnection(t *testing.T) {
	spoofed := http.Header{
		"X-Forwarded-For": {"1.1.1.1"}, "Forwarded": {"for=1.1.1.1"}, "X-Real-Ip": {"1.1.1.1"},
		"True-Client-Ip": {"1.1.1.1"}, "Cf-Connecting-Ip": {"1.1.1.1"}, "X-Client-Ip": {"1.1.1.1"},
	}
	for _, tt := range []struct{ peer, want string }{
		{"192.0.2.1:1234", "192.0.2.1"},
		{"192.0.2.1", "192.0.2.1"},
		{"[2001:db8::1]:443", "2001:db8::1"},
		{"[2001:DB8:0::1]:443", "2001:db8::1"},
		{"2001:db8::1", "2001:db8::1"},
		{"[fe80::1%eth0]:80", "fe80::1"},
		{"[::ffff:192.0.2.1]:80", "192.0.2.1"},
		{"[::ffff:c000:201]:80", "192.0.2.1"},
		{"[2001:db8::192.0.2.1]:80", "2001:db8::c000:201"}, // not an IPv4 address
		{"[64:ff9b::192.0.2.1]:80", "192.0.2.1"},           // NAT64
		{"[2002:c000:201:ffff::1]:80", "192.0.2.1"},        // 6to4
		{"[64:ff9b::10.0.0.1]:80", "64:ff9b::a00:1"},       // not the proxy 10.0.0.1
		{"[2002:a00:1::1]:80", "2002:a00:1::1"},
		{"@", ""},
		{"", ""},
		{"/run/sock", ""},
		{"192.0.2.256:80", ""},
		{"192.0.2.01:80", ""},
		{"[192.0.2.1]:80", ""},
		{"[::1", ""},
		{"192.0.2.1:port", ""},
		{"192.0.2.1:123456", ""},
	} {
		for name, trust := range map[string]httpfacts.Trust{"nobody": {}, "others": {Proxies: proxies}} {
			if got := address(t, trust, tt.peer, spoofed); got != tt.want {
				t.Errorf("peer %q, trusting %s: got %q, want %q", tt.peer, name, got, tt.want)
			}
		}
	}
}

func TestAddress_ThroughTrustedProxies(t *testing.T) {
	for _, tt := range []struct {
		what  string
		peer  string
		lines []string
		want  string
	}{
		{"no header", "10.0.0.1:80", nil, "10.0.0.1"},
		{"one hop", "10.0.0.1:80", []string{"203.0.113.9"}, "203.0.113.9"},
		{"the rightmost that is not trusted", "10.0.0.1:80", []string{"1.1.1.1, 203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"a client that names a trusted proxy", "10.0.0.1:80", []string{"1.1.1.1, 10.9.9.9, 203.0.113.9"}, "203.0.113.9"},
		{"several lines are one list", "10.0.0.1:80", []string{"1.1.1.1", "203.0.113.9", "10.0.0.3", "10.0.0.2"}, "203.0.113.9"},
		{"lines and lists", "10.0.0.1:80", []string{"1.1.1.1", "2.2.2.2, 203.0.113.9", "10.0.0.3, 10.0.0.2"}, "203.0.113.9"},
		{"only proxies", "10.0.0.1:80", []string{"10.0.0.4, 10.0.0.3"}, "10.0.0.4"},
		{"with a port", "10.0.0.1:80", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"IPv6", "10.0.0.1:80", []string{"2001:DB8::0:9"}, "2001:db8::9"},
		{"IPv6 in brackets", "10.0.0.1:80", []string{"[2001:db8::9]"}, "2001:db8::9"},
		{"IPv6 with a port", "10.0.0.1:80", []string{"[2001:db8::9]:4711"}, "2001:db8::9"},
		{"a zone", "10.0.0.1:80", []string{"fe80::1%eth0"}, "fe80::1"},
		{"IPv4-mapped", "10.0.0.1:80", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"an IPv4-mapped proxy", "[::ffff:10.0.0.1]:80", []string{"203.0.113.9, ::ffff:a00:2"}, "203.0.113.9"},
		{"an IPv6 proxy", "[2001:db8:aaaa::1]:80", []string{"203.0.113.9"}, "203.0.113.9"},
		{"spaces and tabs", "10.0.0.1:80", []string{" 1.1.1.1 ,\t203.0.113.9 "}, "203.0.113.9"},
		{"malformed: the last valid address", "10.0.0.1:80", []string{"1.1.1.1, nonsense, 10.0.0.2"}, "10.0.0.2"},
		{"malformed at once", "10.0.0.1:80", []string{"1.1.1.1, 203.0.113.9x"}, "10.0.0.1"},
		{"unknown", "10.0.0.1:80", []string{"1.1.1.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"an empty element", "10.0.0.1:80", []string{"1.1.1.1,, 10.0.0.2"}, "10.0.0.2"},
		{"an empty line", "10.0.0.1:80", []string{"1.1.1.1", ""}, "10.0.0.1"},
		{"a line break", "10.0.0.1:80", []string{"1.1.1.1, 203.0.113.9\n"}, "10.0.0.1"},
		{"a peer that is not trusted", "203.0.113.1:80", []string{"1.1.1.1"}, "203.0.113.1"},
		{"a peer without address", "@", []string{"1.1.1.1"}, ""},
	} {
		header := http.Header{"X-Forwarded-For": tt.lines, "Forwarded": {"for=1.1.1.1"}}
		if got := address(t, httpfacts.Trust{Proxies: proxies}, tt.peer, header); got != tt.want {
			t.Errorf("%s: peer %s, X-Forwarded-For %q: got %q, want %q", tt.what, tt.peer, tt.lines, got, tt.want)
		}
	}
}

func TestAddress_Forwarded(t *testing.T) {
	for _, tt := range []struct {
		what  string
		lines []string
		want  string
	}{
		{"a token", []string{"for=203.0.113.9"}, "203.0.113.9"},
		{"quoted with a port", []string{`for="203.0.113.9:4711"`}, "203.0.113.9"},
		{"IPv6", []string{`for="[2001:db8::9]"`}, "2001:db8::9"},
		{"IPv6 with a port", []string{`For="[2001:db8::9]:4711";proto=https`}, "2001:db8::9"},
		{"an obfuscated port", []string{`for="203.0.113.9:_x9"`}, "203.0.113.9"},
		{"other parameters", []string{`by=_me;host="a,b;for=1.1.1.1";FOR=203.0.113.9;proto=http`}, "203.0.113.9"},
		{"empty parameters", []string{`;;for=203.0.113.9;`}, "203.0.113.9"},
		{"spaces between parameters", []string{`proto=http ; for="203.0.113.9" ; by=_me`}, "203.0.113.9"},
		{"spaces within a parameter", []string{`for = 203.0.113.9`}, "10.0.0.1"},
		{"two values", []string{`for=203.0.113.9 1.1.1.1`}, "10.0.0.1"},
		{"for twice, once empty", []string{`for=;for=1.1.1.1`}, "10.0.0.1"},
		{"only semicolons", []string{`;;`}, "10.0.0.1"},
		{"quoted pairs", []string{`for="203.0.\113.9"`}, "203.0.113.9"},
		{"several", []string{`for=1.1.1.1, for="[2001:db8::9]", for=10.0.0.2`}, "2001:db8::9"},
		{"several lines", []string{`for=1.1.1.1`, `for=203.0.113.9;by=10.0.0.2`, `for=10.0.0.2`}, "203.0.113.9"},
		{"unknown", []string{`for=1.1.1.1, for=unknown, for=10.0.0.2`}, "10.0.0.2"},
		{"obfuscated", []string{`for=1.1.1.1, for=_hidden, for=10.0.0.2`}, "10.0.0.2"},
		{"no for", []string{`for=1.1.1.1, proto=https`}, "10.0.0.1"},
		{"for twice", []string{`for=203.0.113.9;for=1.1.1.1`}, "10.0.0.1"},
		{"an empty for", []string{`for=`}, "10.0.0.1"},
		{"no value", []string{`for`}, "10.0.0.1"},
		{"junk behind the string", []string{`for="203.0.113.9"x`}, "10.0.0.1"},
		{"a quote the client left open", []string{`for=", for=203.0.113.9`}, "203.0.113.9"},
		{"a comma the client quoted", []string{`for="1.1.1.1, for=203.0.113.9`}, "203.0.113.9"},
		{"an escape at the end", []string{`for="203.0.113.9\`}, "10.0.0.1"},
		{"a plain list", []string{`203.0.113.9`}, "10.0.0.1"},
	} {
		header := http.Header{"X-Forwarded-For": {"1.1.1.1"}, "Forwarded": tt.lines}
		trust := httpfacts.Trust{Proxies: proxies, Header: "forwarded"}
		if got := address(t, trust, "10.0.0.1:80", header); got != tt.want {
			t.Errorf("%s: Forwarded %q: got %q, want %q", tt.what, tt.lines, got, tt.want)
		}
	}
}

func TestAddress_Hops(t *testing.T) {
	list := http.Header{"X-Forwarded-For": {"1.1.1.1, 203.0.113.9", "198.51.100.2, 198.51.100.1"}}
	for _, tt := range []struct {
		hops   int
		peer   string
		header http.Header
		want   string
	}{
		{1, "192.0.2.1:80", list, "198.51.100.1"},
		{2, "192.0.2.1:80", list, "198.51.100.2"},
		{3, "192.0.2.1:80", list, "203.0.113.9"},
		{httpfacts.MaxHops, "192.0.2.1:80", list, "1.1.1.1"}, // fewer hops than trusted
		{1, "@", list, "198.51.100.1"},
		{1, "@", nil, ""},
		{2, "192.0.2.1:80", http.Header{"X-Forwarded-For": {"1.1.1.1, unknown, 198.51.100.1"}}, "198.51.100.1"},
	} {
		if got := address(t, httpfacts.Trust{Hops: tt.hops}, tt.peer, tt.header); got != tt.want {
			t.Errorf("%d hops, peer %s, %v: got %q, want %q", tt.hops, tt.peer, tt.header, got, tt.want)
		}
	}
}

func TestAddress_SingleAddressHeader(t *testing.T) {
	header := http.Header{"X-Real-Ip": {"203.0.113.9"}, "X-Forwarded-For": {"1.1.1.1"}}
	trust := httpfacts.Trust{Proxies: proxies, Header: "x-real-ip"}
	if got, want := address(t, trust, "10.0.0.1:80", header), "203.0.113.9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := address(t, trust, "192.0.2.7:80", header), "192.0.2.7"; got != want {
		t.Errorf("from a peer that is not trusted: got %q, want %q", got, want)
	}
}

// A walk that nothing ends stops at MaxHops.
func TestAddress_BoundsTheWalk(t *testing.T) {
	lines := []string{"203.0.113.9", strings.Repeat("10.0.0.1,", httpfacts.MaxHops) + "10.0.0.1"}
	if got, want := address(t, httpfacts.Trust{Proxies: proxies}, "10.0.0.1:80", http.Header{"X-Forwarded-For": lines}), "10.0.0.1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Only the address that the trusted proxy appends counts, whatever a client sends.
func FuzzAddress_ClientsCannotChooseIt(f *testing.F) {
	for _, seed := range []string{"", "1.1.1.1", `for="`, `for="\`, `","`, `"\",`, ",,,", "10.0.0.1", "for=1.1.1.1;", "\x00", strings.Repeat(`"\`, 1<<12)} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, sent string, newLine bool) {
		for name, hop := range map[string]string{"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"} {
			lines := []string{sent + ", " + hop}
			if newLine {
				lines = []string{sent, hop}
			}
			got := address(t, httpfacts.Trust{Proxies: proxies, Header: name}, "10.0.0.1:80", http.Header{name: lines})
			if got != "203.0.113.9" {
				t.Errorf("%s %q: got %q, want %q", name, lines, got, "203.0.113.9")
			}
			// Alone it must be an address, or nothing.
			got = address(t, httpfacts.Trust{Hops: 2, Header: name}, "10.0.0.1:80", http.Header{name: {sent}})
			if addr, err := netip.ParseAddr(got); err != nil || addr.String() != got || addr.Zone() != "" || addr.Is4In6() {
				t.Errorf("%s %q: got %q, want an address in its canonical form", name, sent, got)
			}
		}
	})
}

func TestNew_RefusesTrust(t *testing.T) {
	prefix := netip.MustParsePrefix
	for _, tt := range []struct {
		trust httpfacts.Trust
		want  string
	}{
		{httpfacts.Trust{Hops: -1}, "-1 hops"},
		{httpfacts.Trust{Hops: httpfacts.MaxHops + 1}, "33 hops"},
		{httpfacts.Trust{Hops: 1, Proxies: proxies}, "choose one"},
		{httpfacts.Trust{Proxies: []netip.Prefix{{}}}, "not an address prefix"},
		{httpfacts.Trust{Proxies: []netip.Prefix{prefix("0.0.0.0/0")}}, "contains every address"},
		{httpfacts.Trust{Proxies: []netip.Prefix{prefix("::/0")}}, "contains every address"},
		{httpfacts.Trust{Proxies: []netip.Prefix{prefix("::ffff:10.0.0.0/104")}}, "IPv4-mapped"},
		{httpfacts.Trust{Proxies: make([]netip.Prefix, httpfacts.MaxProxies+1)}, "at most 1024"},
		{httpfacts.Trust{Header: "X Forwarded"}, `"X Forwarded"`},
		{httpfacts.Trust{Header: "X-Forwarded-For:"}, "not a header name"},
	} {
		_, err := httpfacts.New(httpfacts.Config{Trust: tt.trust})
		if !errors.Is(err, httpfacts.ErrTrust) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("New(%+v): got error %v, want one with %q", tt.trust, err, tt.want)
		}
	}
}

func TestTrust_Peer(t *testing.T) {
	for _, tt := range []struct {
		trust httpfacts.Trust
		peer  string
		want  bool
	}{
		{httpfacts.Trust{}, "10.0.0.1:80", false},
		{httpfacts.Trust{Proxies: proxies}, "10.0.0.1:80", true},
		{httpfacts.Trust{Proxies: proxies}, "[::ffff:10.0.0.1]:80", true},
		{httpfacts.Trust{Proxies: proxies}, "192.0.2.1:80", false},
		{httpfacts.Trust{Proxies: proxies}, "11.0.0.1:4711", false},
		{httpfacts.Trust{Proxies: proxies}, "@", false},
		{httpfacts.Trust{Hops: 1}, "@", true},
	} {
		// Headers have no say in it.
		r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{"X-Forwarded-For": {"10.0.0.1"}}}
		source := newSource(t, httpfacts.Config{Trust: tt.trust})
		facts := source.Facts(r)
		if got := facts.Trusted(); got != tt.want || source.Trusts(r) != got {
			t.Errorf("Trust %+v, peer %q: got %v and %v, want %v", tt.trust, tt.peer, got, source.Trusts(r), tt.want)
		}
		facts.Release()
	}
}
