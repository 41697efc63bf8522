// SPDX-License-Identifier: Apache-2.0

package clientaddr_test

import (
	"net/netip"
	"testing"

	"github.com/metehq/mete/internal/clientaddr"
)

func TestCanonical(t *testing.T) {
	for sent, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1", "fe80::1%eth0": "fe80::1",
		"64:ff9b::192.0.2.1": "192.0.2.1", "64:ff9b::c633:6409": "198.51.100.9", "64:ff9b:1::192.0.2.1": "64:ff9b:1::c000:201", "64:ff9b::1:c000:201": "64:ff9b::1:c000:201",
		"2002:c000:201::1": "192.0.2.1", "2002:c000:201:ffff::2": "192.0.2.1", "2003:c000:201::1": "2003:c000:201::1",
		// Embedded private addresses are not converted.
		"64:ff9b::10.0.0.1": "64:ff9b::a00:1", "64:ff9b::127.0.0.1": "64:ff9b::7f00:1", "2002:a00:1::1": "2002:a00:1::1",
		"2002:7f00:1::1": "2002:7f00:1::1", "2002::1": "2002::1", "2002:a9fe:1::1": "2002:a9fe:1::1",
	} {
		if got := clientaddr.Canonical(netip.MustParseAddr(sent)); got.String() != want {
			t.Errorf("Canonical(%s) = %v, want %s", sent, got, want)
		}
	}
	if got := clientaddr.Canonical(netip.Addr{}); got.IsValid() {
		t.Errorf("Canonical of no address = %v", got)
	}
}

func TestUnreachable(t *testing.T) {
	for network, want := range map[string]bool{
		"64:ff9b::/96": true, "64:ff9b::c000:200/120": true, "64:ff9b::/64": false, "2002::/16": true, "2002:c000:200::/40": true,
		"2000::/3": false, "::/0": false, "2001:db8::/32": false, "192.0.2.0/24": false,
	} {
		if got := clientaddr.Unreachable(netip.MustParsePrefix(network)); got != want {
			t.Errorf("Unreachable(%s) = %v, want %v", network, got, want)
		}
	}
}
