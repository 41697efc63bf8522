// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"time"

	"github.com/metehq/mete/jwtclaims"
)

// maxLeeway is that of package jwtclaims.
const maxLeeway = 10 * time.Minute

// checkJWT has package jwtclaims judge its settings.
func (d *decoder) checkJWT(c *Config) {
	if err := jwtclaims.CheckAlgorithms(c.JWT.Algorithms); err != nil {
		d.fail("jwt.algorithms", "%s", strings.TrimPrefix(err.Error(), "jwtclaims: "))
	}
	if len(c.JWT.Algorithms) == 0 {
		d.fail("jwt.algorithms", "is empty: RS256 and ES256 are the usual ones")
	}
	if c.JWT.Leeway < 0 || c.JWT.Leeway > maxLeeway {
		d.fail("jwt.leeway", "must be between 0s and %v, not %v", maxLeeway, c.JWT.Leeway)
	}
	if c.JWT.Keys == "" {
		if c.JWT.Issuer != "" || len(c.JWT.Audience) > 0 {
			d.fail("jwt.keys", "must say the key set: without one nobody looks at issuer and audience")
		}
		return
	}
	if err := jwtclaims.CheckKeySet(c.JWT.Keys); err != nil {
		d.fail("jwt.keys", "%s", strings.TrimPrefix(err.Error(), "jwtclaims: key set: "))
	}
	if c.TrustJWT {
		d.fail("trust_jwt", "excludes jwt.keys: tokens are either verified or believed as they are")
	}
}

// checkPolicyKeys finds policies that no signature can be beside.
func (d *decoder) checkPolicyKeys(c *Config) {
	switch {
	case len(c.PolicyKeys) == 0:
	case c.Policy == "":
		d.fail("policy_keys", "needs a policy file: the built-in example is not signed")
	case c.PolicyDatabase != nil:
		d.fail("policy_keys", "is for policy files: rules in a database are not signed")
	}
}
