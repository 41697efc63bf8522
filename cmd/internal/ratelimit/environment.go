// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/spell"
)

// ReadSettings reads the variables in environ, which has the form of [os.Environ]. An empty variable counts as unset.
// The error has one line per invalid variable. The warnings list variables without effect.
func ReadSettings(environ []string) (s Settings, warnings []string, err error) {
	values := map[string]string{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			values[name] = value
		}
	}
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	var errs []error
	var known []string
	for _, row := range tableOf(&s) {
		known = append(known, row.Name)
		value, isSet := values[row.Name]
		switch {
		case row.read == nil:
			if isSet && !row.isQuiet {
				warnings = append(warnings, row.Name+" has no effect: "+strings.ReplaceAll(row.Effect, "`", ""))
			}
			continue
		case !isSet && row.Default == "":
			continue
		}
		if err := row.read(cmp.Or(value, row.Default)); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", row.Name, shorten(value), err))
		}
	}
	errs = append(errs, s.check()...)
	return s, append(warnings, warnUnknown(values, known)...), errors.Join(errs...)
}

// maxShownValue bounds the bytes of a value in an error.
const maxShownValue = 80

func shorten(value string) string {
	if len(value) > maxShownValue {
		return value[:maxShownValue] + "…"
	}
	return value
}

// check returns the errors of settings that contradict each other.
func (s *Settings) check() (errs []error) {
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Backend == "memcache" {
		fail(`BACKEND_TYPE="memcache": mete has no store in memcache, which cannot count exactly: set REDIS_URL or METE_STORE, and unset BACKEND_TYPE`)
	}
	if s.ServerTLS.Enabled && (s.ServerTLS.Cert == "" || s.ServerTLS.Key == "") {
		fail("GRPC_SERVER_USE_TLS=true: requires GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY")
	}
	if !s.ServerTLS.Enabled && s.ServerTLS.Authority != "" {
		fail("GRPC_CLIENT_TLS_CACERT: requires GRPC_SERVER_USE_TLS=true: without TLS, the service cannot verify clients")
	}
	if s.ClientName != "" && s.ServerTLS.Authority == "" {
		fail("GRPC_CLIENT_TLS_SAN: requires GRPC_CLIENT_TLS_CACERT: without it, the service does not verify clients")
	}
	for _, pair := range []struct {
		cert string
		key  string
		tls  TLSFiles
	}{
		{"CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", s.Control.TLS},
		{"REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY", s.Redis.TLS},
	} {
		if (pair.tls.Cert == "") != (pair.tls.Key == "") {
			fail("%s and %s: set both or neither", pair.cert, pair.key)
		}
	}
	if s.Control.FirstBackoff <= 0 || s.Control.MaxBackoff < s.Control.FirstBackoff {
		fail("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=%v: must be above 0 and at most XDS_CLIENT_BACKOFF_MAX_INTERVAL (%v)", s.Control.FirstBackoff, s.Control.MaxBackoff)
	}
	if s.Control.ConnectRetry <= 0 {
		fail("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=%v: must be above 0", s.Control.ConnectRetry)
	}
	if s.FirstWait <= 0 || s.LongestWait < s.FirstWait {
		fail("REDIS_STARTUP_INITIAL_INTERVAL=%v: must be above 0 and at most REDIS_STARTUP_MAX_INTERVAL (%v)", s.FirstWait, s.LongestWait)
	}
	if s.FlushInterval <= 0 {
		fail("STATS_FLUSH_INTERVAL=%v: must be above 0", s.FlushInterval)
	}
	if s.Tracing.Enabled && s.Tracing.Protocol == "grpc" {
		fail(`TRACING_EXPORTER_PROTOCOL="grpc": mete exports over HTTP only: set it to http, and use the port for HTTP in OTEL_EXPORTER_OTLP_ENDPOINT, usually 4318`)
	}
	if !strings.HasPrefix(s.MetricsPath, "/") {
		fail("PROMETHEUS_PATH=%q: must begin with /", s.MetricsPath)
	}
	return errs
}

// families are the first words of the variables of envoyproxy/ratelimit. Other programs rarely use them.
var families = regexp.MustCompile(`^(GRPC_(SERVER|CLIENT|MAX)|CONFIG_GRPC|XDS_CLIENT|RUNTIME|REDIS_(TLS|PERSECOND|POOL|PIPELINE|SENTINEL|STARTUP|HEALTH)|MEMCACHE|PROMETHEUS|STATSD|TRACING|LIMIT_\w+_HEADER)_`)

// link matches the variables that Kubernetes sets for a Service, such as REDIS_TLS_PORT=tcp://10.0.0.1:80.
var link = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_\d+_[A-Z]+(_(PROTO|PORT|ADDR))?)?)$`)

// maxSlips is the largest edit distance for a warning about a variable outside of the families.
const maxSlips = 2

// warnUnknown returns warnings about unknown variables with names like a known one.
func warnUnknown(values map[string]string, known []string) (warnings []string) {
	lower := make([]string, len(known))
	for i, name := range known {
		lower[i] = strings.ToLower(name)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(known, name) || link.MatchString(name) {
			continue
		}
		near := strings.ToUpper(spell.Nearest(name, lower))
		isNear := near != "" && len(name) > 2*maxSlips && spell.Distance(name, near) <= maxSlips
		switch {
		case isNear:
			warnings = append(warnings, name+" is not a setting: did you mean "+near+"?")
		case families.MatchString(name):
			warnings = append(warnings, name+" is not a setting, and is ignored: see the table in doc/envoy.md")
		}
	}
	return warnings
}
