// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

func TestParseAttribute(t *testing.T) {
	for _, tc := range []struct {
		in     string
		source policy.Source
		name   string
		bits   int
		text   string
	}{
		{"ip:address", policy.SourceIP, "address", 64, "ip:address"},
		{"IP:address/56", policy.SourceIP, "address", 56, "ip:address"},
		{"ip:address/1", policy.SourceIP, "address", 1, "ip:address"},
		{"ip:address/128", policy.SourceIP, "address", 128, "ip:address"},
		{"Header:X-Api-Key", policy.SourceHeader, "x-api-key", 0, "header:x-api-key"},
		{"header:x.y_z!", policy.SourceHeader, "x.y_z!", 0, "header:x.y_z!"},
		{"query:Tenant", policy.SourceQuery, "Tenant", 0, "query:Tenant"},
		{"query:a[b]", policy.SourceQuery, "a[b]", 0, "query:a[b]"},
		{"query:straße", policy.SourceQuery, "straße", 0, "query:straße"},
		{"cookie:Session", policy.SourceCookie, "Session", 0, "cookie:Session"},
		{"jwt:https://example.com/plan", policy.SourceJWT, "https://example.com/plan", 0, "jwt:https://example.com/plan"},
		{"ip:country", policy.SourceNetwork, "country", 0, "ip:country"},
		{"IP:ASN", policy.SourceNetwork, "asn", 0, "ip:asn"},
		{"ip:tor", policy.SourceNetwork, "tor", 0, "ip:tor"},
		{"UA:bot", policy.SourceAgent, "bot", 0, "ua:bot"},
		{"method", policy.SourceMethod, "", 0, "method"},
		{"Path", policy.SourcePath, "", 0, "path"},
		{"host", policy.SourceHost, "", 0, "host"},
		{"tenant", policy.SourceCustom, "", 0, "tenant"},
		{"user:id", policy.SourceCustom, "id", 0, "user:id"},
		{"id:user", policy.SourceCustom, "user", 0, "id:user"},
		{"post", policy.SourceCustom, "", 0, "post"},
		{"a.b-c_d0:x y"[:10], policy.SourceCustom, "x", 0, "a.b-c_d0:x"},
	} {
		a, err := policy.ParseAttribute(tc.in)
		if err != nil || a.Source != tc.source || a.Name != tc.name || a.Bits != tc.bits || a.String() != tc.text {
			t.Errorf("ParseAttribute(%q) = %+v, %v; want %+v", tc.in, a, err, tc)
		}
		if text, err := policy.NormalizeAttribute(tc.in); text != tc.text || err != nil {
			t.Errorf("Normalize(%q) = %q, %v; want %q", tc.in, text, err, tc.text)
		}
		if again, err := policy.ParseAttribute(a.String()); err != nil || again.String() != a.String() {
			t.Errorf("ParseAttribute(%q) = %+v, %v; want what it was made from", a.String(), again, err)
		}
	}
}

func TestParseAttributeBad(t *testing.T) {
	for _, in := range []string{
		"", ":", "header", "header:", "header:a b", "header:a:b", "header:ä", "header:a\n", "query:", "query:a b", "query:\x00", "query:\xff",
		"cookie:a;b", "cookie:a=b", "jwt", "jwt:", "ip", "ip:", "ip:city", "ip:country/24", "ua", "ua:", "ip:address/", "ip:address/0", "ip:address/129", "ip:address/-1",
		"ip:address/+8", "ip:address/08", "ip:address/8/8", "method:", "method:GET", "path:/", "host:x", "Tenant", "ten ant", "0tenant",
		"headers:x", "heder:x", "qurey:x", "cookies:x", "jwts:x", "paht", "hosts", "methods", "tenant:", "tenant:a b",
		strings.Repeat("x", policy.MaxAttributeBytes+1),
	} {
		if a, err := policy.ParseAttribute(in); !errors.Is(err, policy.ErrAttribute) || a != (policy.Attribute{}) {
			t.Errorf("ParseAttribute(%q) = %+v, %v; want an ErrAttribute", in, a, err)
		} else if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 500 {
			t.Errorf("ParseAttribute(%q): error %q is not one readable line", in, err)
		}
	}
	if a, err := policy.ParseAttribute("query:" + strings.Repeat("x", policy.MaxAttributeBytes-6)); err != nil {
		t.Errorf("%d bytes: %v", len(a.String()), err)
	}
}

func TestMap(t *testing.T) {
	m := policy.Map{"header:a": ""}
	for name, want := range map[string]bool{"header:A": true, "header:b": false} {
		a, err := policy.ParseAttribute(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Lookup(a); ok != want {
			t.Errorf("Lookup(%s) = %t, want %t", name, ok, want)
		}
	}
}
