// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/metehq/mete/internal/clientaddr"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

func (d *decoder) attributes() *facts {
	attrs := d.newFacts()
	for name := range d.members(nil) {
		attr, err := d.names.parse(name)
		if err != nil {
			d.fail(strings.TrimPrefix(err.Error(), policy.ErrAttribute.Error()+": "))
			continue
		}
		if attrs.given(attr) {
			d.fail(fmt.Sprintf("the attribute %q is given twice; say it once", attr.String()))
			continue
		}
		if d.null() {
			attrs.addAbsent(attr)
			continue
		}
		value := d.want("the value of an attribute is a string; leave out an attribute that the request does not have")
		if d.problem != nil {
			continue
		}
		attrs.add(attr, d.spelling(attr, value))
	}
	return attrs
}

// spelling returns value as the other HTTP front doors would spell it: one
// thing under two names would fall under two rules and have two buckets.
func (d *decoder) spelling(attr policy.Attribute, value string) string {
	switch attr.Source {
	case policy.SourceHeader:
		if attr.Name == "authorization" {
			return httpfacts.Credentials(value)
		}
	case policy.SourceCookie:
		return httpfacts.CookieText(value)
	case policy.SourcePath:
		path, disputed := requestpath.Of(value)
		if disputed {
			d.fail("servers read this path differently; refuse the request, or resolve its dot segments")
		}
		return path
	case policy.SourceHost:
		host, ok := requestpath.Host(value)
		if !ok {
			d.fail("this is no host; write its name, such as example.com, or leave it out")
		}
		return host
	case policy.SourceMethod:
		if value == "" {
			d.fail("the method is empty; write one such as GET, or leave it out")
		}
		return requestpath.Method(value)
	case policy.SourceIP:
		addr, err := netip.ParseAddr(value)
		if err != nil {
			d.fail(fmt.Sprintf("%q is not an address; write one such as 192.0.2.1 or 2001:db8::1, without a port, or leave it out", clip(value)))
			return ""
		}
		return respelled(clientaddr.Canonical(addr), value)
	}
	return value
}

// respelled returns the usual spelling of addr, which is value as a rule.
func respelled(addr netip.Addr, value string) string {
	var room [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")]byte
	if usual := addr.AppendTo(room[:0]); string(usual) != value {
		return string(usual)
	}
	return value
}
