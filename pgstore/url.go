// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Connection settings that differ from the defaults of pgx. Callers wait for less than a second, and an
// unreachable server must be detected.
const (
	connectTimeout = 2 * time.Second // per host

	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3

	// spareConns are connections for work other than takes: sweeps, nodes, rules and violations.
	spareConns = 4
)

// ParseURL reads a URL of PostgreSQL and returns settings for [Dial] and [New].
//
//	postgres://[user[:password]@][host[:5432][,…]][/database]
//
// The scheme postgresql is equivalent. With several hosts, the first one that accepts writes is used. Parameters
// follow after ?, joined by &:
//
//	schema=mete, prefix=TEXT, durable=true, timeout=TIME       see [Config]
//	max_batch=N, max_queue=N, max_in_flight=N                  see [Config]
//	sslmode=verify-full, sslrootcert=FILE, host=/run/postgresql, pool_max_conns=N, …
//
// The last line shows parameters of PostgreSQL's clients and of pgx. Missing settings are read from the
// environment (PGPASSWORD, PGSSLMODE, …) and from ~/.pgpass. Values are percent-encoded; + is not a space. Errors
// contain no password.
//
// Unlike in pgx, connecting times out after 2 s, the server must accept writes (target_session_attrs=read-write),
// and the application name is mete. The pool has up to four connections more than [Config.MaxInFlight]. Poolers
// work.
func ParseURL(raw string) (*pgxpool.Config, Config, error) {
	options, config, err := parseURL(raw)
	if err != nil {
		return nil, Config{}, fmt.Errorf("pgstore: url: %w", err)
	}
	return options, config, nil
}

func parseURL(raw string) (options *pgxpool.Config, config Config, err error) {
	kind, rest, ok := strings.Cut(raw, "://")
	if !ok || kind != "postgres" && kind != "postgresql" {
		return nil, config, errors.New("must begin with postgres:// or postgresql://")
	}
	if strings.ContainsAny(rest, "# \t\r\n") {
		return nil, config, errors.New("must not contain # or spaces: write %23 and %20")
	}
	place, query, _ := strings.Cut(rest, "?")
	if err := checkHosts(place, query); err != nil {
		return nil, config, err
	}
	values, err := parseQuery(query)
	if err != nil {
		return nil, config, err
	}
	if config, err = values.parseConfig(); err != nil {
		return nil, config, err
	}
	options, err = pgxpool.ParseConfig("postgres://" + place + "?" + values.encode())
	if err != nil {
		return nil, config, withoutSecrets(err, place, values)
	}
	return options, config, setPoolDefaults(options, config, values)
}

// checkHosts validates the text before the parameters. Its errors show no part of it, because any part could be a
// password.
func checkHosts(place, query string) error {
	authority, database, _ := strings.Cut(place, "/")
	at := strings.LastIndex(authority, "@")
	if strings.Contains(query, "@") || strings.Contains(database, "@") || strings.Contains(authority[:max(at, 0)], "@") {
		return errors.New("unexpected @: in names, passwords and parameters, write %40 for @ and %2F for /")
	}
	if strings.Contains(database, "/") {
		return errors.New("unexpected / after the database: in names and passwords, write %2F for /")
	}
	for host := range strings.SplitSeq(authority[at+1:], ",") {
		if _, port, err := net.SplitHostPort(host); err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return errors.New("the port of a host must be a number between 1 and 65535")
			}
		} else if strings.Contains(strings.TrimLeft(host, "["), ":") && !strings.HasSuffix(host, "]") {
			return errors.New("a host must be host, host:port, [address] or [address]:port")
		}
	}
	return nil
}

// withoutSecrets returns an error of pgx without the URL, which the error contains.
func withoutSecrets(err error, place string, values parameters) error {
	_, text, _ := strings.Cut(err.Error(), "`: ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "failed to "), "cannot ")
	for _, secret := range values.secrets(place) {
		if secret != "" && strings.Contains(text, secret) {
			return errors.New("pgx cannot parse it")
		}
	}
	return fmt.Errorf("pgx cannot parse it: %s", text)
}

// setPoolDefaults sets defaults that the URL does not override.
func setPoolDefaults(options *pgxpool.Config, config Config, values parameters) error {
	c := options.ConnConfig
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
	}}
	c.DialFunc = dialer.DialContext // ConnectTimeout bounds it
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.ValidateConnect == nil && !values.has("target_session_attrs") {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "mete"
	}
	config, err := config.withDefaults()
	if err != nil {
		return err
	}
	if !values.has("pool_max_conns") {
		options.MaxConns = max(options.MaxConns, int32(config.MaxInFlight+spareConns))
	}
	return nil
}
