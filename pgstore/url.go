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

// What a limiter needs otherwise than pgx has it. A caller waits for less than a
// second, and a server that has gone without a word is to be noticed.
const (
	connectTimeout = 2 * time.Second // for each host

	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3

	// spareConns are for all that goes beside takes: looking after the tables,
	// nodes, rules and violations.
	spareConns = 4
)

// ParseURL reads a URL of PostgreSQL, and returns settings for [Dial] and for [New].
//
//	postgres://[user[:password]@][host[:5432][,…]][/database]
//
// postgresql is the same. Where there is more than one host, the first one that
// takes writes is used. Behind ? and joined by & may follow
//
//	schema=mete, prefix=TEXT, durable=true, timeout=TIME       see [Config]
//	max_batch=N, max_queue=N, max_in_flight=N                  see [Config]
//	sslmode=verify-full, sslrootcert=FILE, host=/run/postgresql, pool_max_conns=N, …
//
// where those of the last line are of PostgreSQL's other clients, and of pgx. What
// is not there is taken from the environment (PGPASSWORD, PGSSLMODE, …) and from
// ~/.pgpass, as they do. All is escaped as usual in URLs, except that + is no space.
// No error contains a password.
//
// Other than in pgx, connections are given up after 2 s, must be to a server that
// takes writes (target_session_attrs=read-write), and are called mete. There may be
// four more of them than [Config.MaxInFlight]. All works through a pooler.
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
		return nil, config, errors.New("must have no #, nor spaces: write %23 and %20")
	}
	place, query, _ := strings.Cut(rest, "?")
	if err := checkPlace(place, query); err != nil {
		return nil, config, err
	}
	values, err := parseQuery(query)
	if err != nil {
		return nil, config, err
	}
	if config, err = values.config(); err != nil {
		return nil, config, err
	}
	options, err = pgxpool.ParseConfig("postgres://" + place + "?" + values.encode())
	if err != nil {
		return nil, config, told(err, place, values)
	}
	return options, config, adjust(options, config, values)
}

// checkPlace sees that what stands before the parameters can be nothing else. It
// shows none of it: where something is wrong, anything may be a password.
func checkPlace(place, query string) error {
	authority, database, _ := strings.Cut(place, "/")
	at := strings.LastIndex(authority, "@")
	if strings.Contains(query, "@") || strings.Contains(database, "@") || strings.Contains(authority[:max(at, 0)], "@") {
		return errors.New("there is an @ too many: in names, passwords and parameters write %40, and %2F for /")
	}
	if strings.Contains(database, "/") {
		return errors.New("only the name of a database may follow the hosts: in names and passwords write %2F for /")
	}
	for host := range strings.SplitSeq(authority[at+1:], ",") {
		if _, port, err := net.SplitHostPort(host); err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return errors.New("the port behind a host must be a number between 1 and 65535")
			}
		} else if strings.Contains(strings.TrimLeft(host, "["), ":") && !strings.HasSuffix(host, "]") {
			return errors.New("hosts are written host, host:port, [address] or [address]:port")
		}
	}
	return nil
}

// told is what pgx finds wrong, without the URL, which its error keeps.
func told(err error, place string, values parameters) error {
	_, text, _ := strings.Cut(err.Error(), "`: ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "failed to "), "cannot ")
	for _, secret := range values.secrets(place) {
		if secret != "" && strings.Contains(text, secret) {
			return errors.New("pgx cannot read it")
		}
	}
	return fmt.Errorf("pgx cannot read it: %s", text)
}

// adjust sets what the URL does not.
func adjust(options *pgxpool.Config, config Config, values parameters) error {
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
	config, err := config.checked()
	if err != nil {
		return err
	}
	if !values.has("pool_max_conns") {
		options.MaxConns = max(options.MaxConns, int32(config.MaxInFlight+spareConns))
	}
	return nil
}
