// SPDX-License-Identifier: Apache-2.0

package metrics

import "time"

// expiry is of a policy that says when it expires.
func (w writer) expiry(at time.Time) {
	if at.IsZero() {
		return
	}
	expired := 0.0
	if !time.Now().Before(at) {
		expired = 1
	}
	w.gauge("mete_policy_expired", "1 where the policy in force has passed its expires_at. It is enforced all the same.", expired)
	w.gauge("mete_policy_expires_timestamp_seconds", "The expires_at of the policy in force, as Unix time.", float64(at.Unix()))
}

// policy says which one is in force. Its version is the operator's.
func (w writer) policy(version int64, rules int) {
	w.gauge("mete_policy_version", "The version that the policy in force says it has; 0 where it says none.", float64(version))
	w.gauge("mete_policy_rules", "Rules of the policy in force. The first 200 have series of their own.", float64(rules))
}
