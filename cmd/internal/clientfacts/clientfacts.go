// SPDX-License-Identifier: Apache-2.0

// Package clientfacts supplies ip:country, ip:asn, ip:tor and ua:bot to the policies of the program.
package clientfacts

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/crawlers"
	"github.com/metehq/mete/geoip"
	"github.com/metehq/mete/policy"
)

// Open reads the files of the settings and follows their changes until close is called. A policy that uses an attribute
// without its file is an error with the setting to change. setting returns the name of a setting for this error.
func Open(c config.GeoIP, log *slog.Logger, setting func(name string) string) (facts policy.Facts, close func(), err error) {
	var db *geoip.Database
	close = func() {}
	if c != (config.GeoIP{}) {
		if db, err = geoip.Open(geoip.Config{Country: c.Country, ASN: c.ASN, TorExits: c.TorExits, Logger: log}); err != nil {
			return policy.Facts{}, nil, err
		}
		close = db.Close
	}
	facts.Find = func(a policy.Attribute, from string) (string, bool) {
		if a.Source == policy.SourceAgent || db == nil {
			return crawlers.Find(a, from)
		}
		return db.Find(a, from)
	}
	facts.Check = func(a policy.Attribute) error {
		if a.Source != policy.SourceNetwork || db != nil && db.Has(a) {
			return nil
		}
		name, file := "geoip."+a.Name, "an MMDB file"
		if a.Name == "tor" {
			name, file = "geoip.tor_exits", "a list of addresses"
		}
		return fmt.Errorf("set %s to %s", setting(name), file)
	}
	return facts, close, nil
}

// Missing returns the attributes of a policy that follow from an address and have no file.
func Missing(m *policy.Matcher, facts policy.Facts) []policy.Attribute {
	return slices.DeleteFunc(m.Attributes(), func(a policy.Attribute) bool { return facts.Check(a) == nil })
}
