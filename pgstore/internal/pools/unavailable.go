// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/store"
)

// ErrStandby is the error of a server that rejects writes.
var ErrStandby = errors.New("the server is a standby or read-only and rejects writes: use the address of its primary, or list all hosts")

// MarkUnavailable wraps [store.ErrUnavailable] around an error if the server does not answer or is not ready. A later
// attempt may succeed. It returns other errors unchanged.
func MarkUnavailable(err error) error {
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = &connectError{connect}
	}
	if isTemporary(err) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection) {
		return ErrStandby
	}
	return err
}

func isTemporary(err error) bool {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return isNotReady(refusal)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	_, ok := errors.AsType[net.Error](err)
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting {
		ok = ok || pgconn.SafeToRetry(err) // the connection was closed before
	}
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// isNotReady reports whether a server's refusal is temporary. PgBouncer reports all of its errors as protocol
// violations.
func isNotReady(refusal *pgconn.PgError) bool {
	if refusal.Code == "08P01" {
		return slices.ContainsFunc(poolerNotReady, func(text string) bool { return strings.Contains(refusal.Message, text) })
	}
	return slices.Contains([]string{
		"55P03", // lock_not_available
		"57014", // query_canceled: statement_timeout
		"57P01", // admin_shutdown
		"57P02", // crash_shutdown
		"57P03", // cannot_connect_now
	}, refusal.Code) || slices.Contains([]string{
		"08", // connection exceptions
		"40", // transaction rollback
		"53", // insufficient resources
	}, refusal.Code[:min(2, len(refusal.Code))])
}

var poolerNotReady = []string{
	"server_login_retry", "query_wait_timeout", "server conn crashed", "server_idle_timeout", "client_login_timeout",
	"server connect", "cannot connect", "shutting down", "no more connections allowed", "pgbouncer cannot",
}

type connectError struct{ err *pgconn.ConnectError }

func (e *connectError) Error() string {
	lines := strings.Split(e.err.Unwrap().Error(), "\n")
	// If pgx retried without TLS, only the second attempt is of interest.
	beyond := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(line, "server refused TLS connection") })
	if len(beyond) > 0 {
		lines = beyond
	}
	var said []string
	for _, line := range lines {
		if line = shorten(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

// shorten removes repetitions from "address (host): dial error: dial tcp address: cause".
func shorten(line string) string {
	line = strings.TrimPrefix(line, "hostname resolving error: ") // "lookup …" follows
	address, rest, ok := strings.Cut(line, " (")
	host, cause, closed := strings.Cut(rest, "): ")
	if !ok || !closed || strings.ContainsAny(address+host, " ") {
		return line
	}
	cause = strings.TrimPrefix(cause, "dial error: ")
	switch dialed, known := strings.Contains(cause, address), strings.Contains(address, host); {
	case dialed && known:
		return cause
	case dialed:
		return host + ": " + cause
	case known:
		return address + ": " + cause
	}
	return address + " (" + host + "): " + cause
}

func (e *connectError) Unwrap() error { return e.err }
