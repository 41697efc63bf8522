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
	Name        string // main, admin, grpc or resp
	Connections int64  // open connections, including upgraded ones
	InFlight    int64  // requests in progress
	Refused     uint64 // requests rejected by a limit
	Full        uint64 // times when all connections were in use

	CertificateExpires time.Time // zero: no TLS
}

func (w writer) reloads(r Reloads) {
	w.results("mete_policy_reloads_total", "Changes of the policy by result.", result{"applied", r.Applied}, result{"failed", r.Failed})
	w.gauge("mete_policy_reload_failing", "1 while the last change of the policy failed and the previous policy stays active.", flag(r.Failing))
	w.gauge("mete_policy_applied_timestamp_seconds", "Unix time at which the active policy was activated.", float64(r.At.UnixMilli())/1e3)
}

func (w writer) listener(l Listener) {
	of := w.withLabel("listener", l.Name)
	of.gauge("mete_http_connections", "Open connections, including upgraded ones such as WebSockets.", float64(l.Connections))
	of.gauge("mete_http_in_flight", "Requests in progress.", float64(l.InFlight))
	of.counter("mete_http_refused_total", "Requests that were rejected because of max_in_flight.", float64(l.Refused))
	of.counter("mete_http_connections_full_total", "Times that max_connections was reached, so that an idle connection was closed or a new one had to wait.", float64(l.Full))
	if !l.CertificateExpires.IsZero() {
		of.gauge("mete_tls_certificate_expires_timestamp_seconds", "Unix time at which the certificate expires.", float64(l.CertificateExpires.Unix()))
	}
}

func (w writer) expiry(at time.Time) {
	if at.IsZero() {
		return
	}
	w.gauge("mete_policy_expired", "1 after the expires_at of the active policy. The policy is still enforced.", flag(!time.Now().Before(at)))
	w.gauge("mete_policy_expires_timestamp_seconds", "The expires_at of the active policy as Unix time.", float64(at.Unix()))
}

// Bundle returns the metrics of a policy bundle.
func Bundle(status func() bundle.Status) Source {
	return func(w writer) { w.bundle(status()) }
}

func (w writer) bundle(b bundle.Status) {
	w.gauge("mete_policy_bundle_age_seconds", "Time since the policy source last served the active bundle.", max(time.Since(b.Confirmed).Seconds(), 0))
	w.gauge("mete_policy_bundle_from_disk", "1 if the active bundle was loaded from disk and the source has not confirmed it since the start.", flag(b.FromDisk))
	w.withLabel("digest", b.Digest).gauge("mete_policy_bundle_info", "1 for the active bundle, labeled with a prefix of its SHA-256.", 1)
	w.results("mete_policy_bundle_polls_total", "Polls of the policy source by result: refused bundles are invalid, unsigned or older.",
		result{"applied", b.Applied}, result{"unchanged", b.Unchanged}, result{"refused", b.Refused}, result{"failed", b.Failed})
}

func (w writer) policy(version int64, rules int) {
	w.gauge("mete_policy_version", "The bundle_version of the active policy; 0 without one.", float64(version))
	w.gauge("mete_policy_rules", "Rules of the active policy. The first 200 have their own time series.", float64(rules))
}
