// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/metehq/mete/cmd/internal/bundle"

// checkBundle checks the settings of a policy at an address.
func (d *decoder) checkBundle(c *Config) {
	if !bundle.IsURL(c.Policy) {
		if c.PolicyCA != "" {
			d.fail("policy_ca", "is for a policy at an https:// address")
		}
		return
	}
	if _, err := bundle.CheckURL(c.Policy); err != nil {
		d.fail("policy", "%s", err)
	}
	if len(c.PolicyKeys) == 0 {
		d.fail("policy_keys", "must name a public key: a policy at an address needs a signature")
	}
	if c.StateDirectory == "" {
		d.fail("state_directory", "must name a directory: the last good policy is kept there for restarts")
	}
}
