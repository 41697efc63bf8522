// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/metehq/mete/cmd/internal/bundle"
)

// Reloads counts changes of the policy by result.
type Reloads struct {
	Applied, Failed uint64
	Failing         bool      // the last change failed, so the active policy may be outdated
	At              time.Time // when the active policy was activated
}

// A Listener holds the state of an address of the server.
type Listener struct {
	Name        string // main or admin
	Connections int64  // open connections, including upgraded ones
	InFlight    int64  // requests in progress
	Refused     uint64 // requests rejected by a limit
	Full        uint64 // times when all connections were in use

	CertificateExpires time.Time // zero: no TLS
}

func (w writer) reloads(r Reloads) {
	w.results("mete_policy_reloads_total", "Changes of the policy, by what became of them.", result{"applied", r.Applied}, result{"failed", r.Failed})
	w.gauge("mete_policy_reload_failing", "1 while the last change of the policy could not be put in force, and the one before stays.", flag(r.Failing))
	w.gauge("mete_policy_applied_timestamp_seconds", "When the policy in force was put in force, as Unix time.", float64(r.At.UnixMilli())/1e3)
}

func (w writer) listener(l Listener) {
	of := w.with("listener", l.Name)
	of.gauge("mete_http_connections", "Open connections, those that a WebSocket has taken over included.", float64(l.Connections))
	of.gauge("mete_http_in_flight", "Requests that are being answered.", float64(l.InFlight))
	of.counter("mete_http_refused_total", "Requests that there was no room for.", float64(l.Refused))
	of.counter("mete_http_connections_full_total", "Times that max_connections were open: one that was idle was closed for a new one, or that waited.", float64(l.Full))
	if !l.CertificateExpires.IsZero() {
		of.gauge("mete_tls_certificate_expires_timestamp_seconds", "When the certificate that is served expires, as Unix time.", float64(l.CertificateExpires.Unix()))
	}
}

// expiry writes the expires_at of the active policy.
func (w writer) expiry(at time.Time) {
	if at.IsZero() {
		return
	}
	w.gauge("mete_policy_expired", "1 where the policy in force has passed its expires_at. It is enforced all the same.", flag(!time.Now().Before(at)))
	w.gauge("mete_policy_expires_timestamp_seconds", "The expires_at of the policy in force, as Unix time.", float64(at.Unix()))
}

// Bundle returns the metrics of a policy bundle.
func Bundle(status func() bundle.Status) Source {
	return func(w writer) { w.bundle(status()) }
}

func (w writer) bundle(b bundle.Status) {
	w.gauge("mete_policy_bundle_age_seconds", "Time since the address of the policy last had the active bundle.", max(time.Since(b.Confirmed).Seconds(), 0))
	w.gauge("mete_policy_bundle_from_disk", "1 where the active bundle is from the disk, and its address has not confirmed it since the start.", flag(b.FromDisk))
	w.with("digest", b.Digest).gauge("mete_policy_bundle_info", "1 for the active bundle, by the beginning of its SHA-256.", 1)
	w.results("mete_policy_bundle_polls_total", "Polls of the address of the policy, by result: refused bundles are broken, unsigned or older.",
		result{"applied", b.Applied}, result{"unchanged", b.Unchanged}, result{"refused", b.Refused}, result{"failed", b.Failed})
}

// policy writes the bundle_version and the number of rules of the active policy.
func (w writer) policy(version int64, rules int) {
	w.gauge("mete_policy_version", "The version that the policy in force says it has; 0 where it says none.", float64(version))
	w.gauge("mete_policy_rules", "Rules of the policy in force. The first 200 have series of their own.", float64(rules))
}
