// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"slices"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// hashKeyVar is the environment variable with the hash_key of the servers. A flag
// would show it to everybody on the machine.
const hashKeyVar = "METE_HASH_KEY"

// fixedHashKey takes the place of hashKeyVar. It is no secret: hashes by it stay in the
// process, and make check, replay and explain come out the same every time.
const fixedHashKey = "the key of check, replay and explain"

// policyOptions are those of policies that no server has loaded.
func policyOptions() policy.Options {
	key := os.Getenv(hashKeyVar)
	if key == "" {
		key = fixedHashKey
	}
	return policy.Options{HashKey: []byte(key)}
}

// hashKeyNote says which rule of m treats other keys otherwise on the servers, as it goes
// by hashed keys and hashKeyVar is not set. It is empty where no rule does.
func hashKeyNote(m *policy.Matcher) string {
	if os.Getenv(hashKeyVar) != "" {
		return ""
	}
	for _, r := range m.Rules() {
		if !slices.ContainsFunc(r.LimitKeys, policy.Attribute.Secret) {
			continue
		}
		anchored := slices.ContainsFunc(r.Limits, func(l policy.Limit) bool { return l.Bucket.Anchor() == bucket.AnchorKey })
		switch {
		case r.Mode.Partial():
			return fmt.Sprintf("rule %q is in force for %v of its keys, which are hashed: the servers choose others, unless %s is their hash_key", r.Name, r.Mode, hashKeyVar)
		case anchored && r.Mode != policy.ModeOff:
			return fmt.Sprintf("the windows of rule %q begin by its keys, which are hashed: on the servers they begin otherwise, unless %s is their hash_key", r.Name, hashKeyVar)
		}
	}
	return ""
}
