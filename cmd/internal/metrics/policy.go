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
