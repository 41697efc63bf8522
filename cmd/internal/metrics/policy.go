// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete/cmd/internal/bundle"
)

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

// Bundle is the source of a policy that is polled from an address.
func Bundle(status func() bundle.Status) Source {
	return func(w writer) { w.bundle(status()) }
}

func (w writer) bundle(b bundle.Status) {
	fromDisk := 0.0
	if b.FromDisk {
		fromDisk = 1
	}
	w.gauge("mete_policy_bundle_age_seconds", "Time since the address of the policy last had the active bundle.", max(time.Since(b.Confirmed).Seconds(), 0))
	w.gauge("mete_policy_bundle_from_disk", "1 where the active bundle is from the disk, and its address has not confirmed it since the start.", fromDisk)
	info := writer{w.to, prometheus.Labels{"digest": b.Digest}}
	info.gauge("mete_policy_bundle_info", "1 for the active bundle, by the beginning of its SHA-256.", 1)
	for _, of := range []struct {
		result string
		n      uint64
	}{{"applied", b.Applied}, {"unchanged", b.Unchanged}, {"refused", b.Refused}, {"failed", b.Failed}} {
		by := writer{w.to, prometheus.Labels{"result": of.result}}
		by.counter("mete_policy_bundle_polls_total", "Polls of the address of the policy, by result: refused bundles are broken, unsigned or older.", float64(of.n))
	}
}

// policy says which one is in force. Its version is the operator's.
func (w writer) policy(version int64, rules int) {
	w.gauge("mete_policy_version", "The version that the policy in force says it has; 0 where it says none.", float64(version))
	w.gauge("mete_policy_rules", "Rules of the policy in force. The first 200 have series of their own.", float64(rules))
}
